"""An admin records a cluster, asks what another rule would have done, and looks at it."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import re
import signal
import subprocess
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import dray.testing
from commands import run_here
from dray.dashboard.app import KEY_HEADER
from dray_process import DrayProcess, run_dray
from patience import PATIENCE, eventually

ROOT = Path(__file__).parents[2]
MORNING = ROOT / "examples" / "replay" / "morning.recording"
TEMPLATE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpus}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com, count: 4}}]}}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: train-%d}
spec:
  restartPolicy: Never
  resourceClaims: [{name: gpus, resourceClaimTemplateName: gpus}]
  containers:
  - {name: main, image: i, env: [{name: TOKEN, value: hunter2}], resources: {claims: [{name: gpus}]}}
"""
RULE = """
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: hbm}
spec: {deviceSelector: {pool: node-1}, taint: {key: hbm, effect: %s}}
"""


class Watched:
    """A command whose lines are waited for."""

    def __init__(self, *words: str) -> None:
        environment = os.environ | {"PYTHONUNBUFFERED": "1"}
        self.process = DrayProcess(*words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment)

    def until(self, text: str) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if text in line:
                return line
        raise AssertionError(f"it ended without saying {text!r}")

    def interrupt(self) -> str:
        """Ctrl-C; what it says at the end."""
        self.process.send_signal(signal.SIGINT)
        told, _ = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0, told
        return told


@pytest.fixture(scope="module")
def cluster() -> Iterator[dray.testing.Cluster]:
    with dray.testing.cluster(nodes=1) as found:
        yield found


def so_far(recording: Path) -> list[str]:
    """The lines of a recording that goes on, as far as they are written."""
    return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(recording.read_bytes()).decode().splitlines()


def run(*words: str) -> Any:
    done = run_dray(*words)
    assert done.returncode == 0, done.stderr
    return done


def test_a_rule_that_evicted_is_compared_with_one_that_does_not(cluster: dray.testing.Cluster, tmp_path: Path) -> None:
    file = tmp_path / "day.recording"
    cluster.apply(TEMPLATE, POD % 1)
    cluster.wait("pod/train-1", lambda pod: pod["status"].get("phase") == "Running")
    recorder = Watched("record", "--kubeconfig", str(cluster.kubeconfig), str(file))
    recorder.until("recording to")
    cluster.apply(POD % 2)
    cluster.wait("pod/train-2", lambda pod: pod["status"].get("phase") == "Running")
    # The recorder follows pods and rules apart: what comes in one moment may be told in either order.
    eventually(lambda: any("train-2" in line and "Running" in line for line in so_far(file)))
    cluster.apply(RULE % "NoExecute")
    eventually(lambda: not cluster.list("pods"))
    assert "changes in" in recorder.interrupt()
    assert b"hunter2" not in gzip.decompress(file.read_bytes())

    (tmp_path / "softer.yaml").write_text(RULE % "NoSchedule")
    found = json.loads(run("replay", str(file), "--with", str(tmp_path / "softer.yaml"), "-o", "json").stdout)
    assert [found[column]["evictions"] for column in ("recorded", "replayed", "changed")] == [2, 2, 0]
    assert found["recorded"]["placed"] == found["replayed"]["placed"] == 1, "the other was there already"
    assert found["changed"]["neverRan"][0]["pod"] == "default/train-2", "now the devices are tainted when it comes"
    assert found["notes"] == []


def test_names_can_be_hashed_and_it_replays_all_the_same(cluster: dray.testing.Cluster, tmp_path: Path) -> None:
    file = tmp_path / "hashed.recording"
    done = run("record", "--kubeconfig", str(cluster.kubeconfig), str(file), "--hash-names", "--for", "100ms")
    assert "changes in" in done.stdout
    text = gzip.decompress(file.read_bytes())
    assert b"node-1" not in text
    assert b'"gpu.example.com"' in text, "expressions speak of drivers"
    found = json.loads(run("replay", str(file), "-o", "json").stdout)
    assert found["replayed"]["nodes"] == 1
    assert found["replayed"]["problems"] == []
    assert found["replayed"]["samples"][-1]["tainted"] == found["recorded"]["samples"][-1]["tainted"]


def test_what_cannot_be_recorded_is_said(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("mine")
    for words, why in (
        (("record", str(tmp_path / "x"), "--for", "soon"), "--for 'soon' is not a time from"),
        (("record", str(tmp_path / "x"), "--kubeconfig", str(tmp_path / "none")), "cannot read"),
    ):
        done = run_here(*words)
        assert (done.returncode, why in done.stderr) == (2, True), done.stderr
    assert (tmp_path / "there").read_text() == "mine"


def test_a_recording_is_played_to_the_dashboard() -> None:
    shown = Watched("replay", str(MORNING), "--dashboard", "--speed", "3600x", "--port", "0")
    link = re.search(r"http://\S+", shown.until("http://"))
    assert link is not None
    parts = urlsplit(link[0])
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=PATIENCE)
    try:
        headers = {"Content-Type": "application/json", "Sec-Fetch-Site": "same-origin"}
        body = json.dumps({"code": parts.fragment.partition("code=")[2]})
        connection.request("POST", "/dashboard/api/login", body, headers)
        answer = connection.getresponse()
        key = json.loads(answer.read())["key"]
        headers |= {"Cookie": str(answer.headers["Set-Cookie"]).partition(";")[0], KEY_HEADER: key}
        shown.until("the history is over")
        time.sleep(1.1)  # an hour of the replay, had its clock not been stopped
        connection.request("GET", "/dashboard/api/watch?view=timeline&once=1", headers=headers)
        told = json.loads(connection.getresponse().read())
        assert any(entry["time"].startswith("2025-06-16") for entry in told["entries"]), (
            "the time is that of the history"
        )
    finally:
        connection.close()
        assert shown.interrupt() == ""
