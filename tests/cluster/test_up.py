"""`dray up` as a process of its own, used with stock kubectl: a cluster in a second that keeps its state."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from commands import run_here
from dray.all_in_one import Cluster, ClusterSettings
from dray.cli.up import announce_components
from dray.server.instance import ServerSettings
from dray.simulation import load_profile
from dray_process import DrayProcess, run_dray
from live_server import Kubectl, LiveServer
from patience import KUBECTL_PATIENCE, PATIENCE, eventually

CLAIM_AND_POD = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one-gpu}
spec:
  spec:
    devices:
      requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]
---
apiVersion: v1
kind: Pod
metadata:
  name: train
  annotations: {dray.dev/run-seconds: "2"}
spec:
  restartPolicy: Never
  containers:
    - {name: main, image: busybox, resources: {claims: [{name: gpu}]}}
  resourceClaims: [{name: gpu, resourceClaimTemplateName: one-gpu}]
"""


class Up:
    """A running `dray up`; what it printed is in `lines`."""

    def __init__(self, process: DrayProcess, server: LiveServer, lines: list[str]) -> None:
        self.process = process
        self.server = server
        self.lines = lines

    def stop(self) -> None:
        """Ends it as Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0


@contextmanager
def up(directory: Path, *options: str) -> Iterator[Up]:
    """A cluster that has said that it is ready."""
    words = ("up", "--dir", str(directory), "--port", "0", *options)
    with DrayProcess(*words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        lines: list[str] = []
        for line in process.stdout:
            lines.append(line.rstrip())
            if line.startswith("nodes "):
                break
        found = re.search(r"https://\S+", "\n".join(lines))
        try:
            assert found is not None, lines
            server = LiveServer(found[0], directory)
            yield Up(process, server, lines)
            server.close()
        finally:
            if process.poll() is None:
                process.kill()


def held_meanwhile(server: LiveServer) -> str:
    """The first device that a claim was given: told by a watch from the beginning, for it may be free again by now."""
    events = server.watch("/apis/resource.k8s.io/v1/resourceclaims?watch=true&resourceVersion=1")
    with closing(events):
        given = (event["object"]["status"].get("allocation") for event in events if "status" in event["object"])
        allocation = next(found for found in given if found)
    device: str = allocation["devices"]["results"][0]["device"]
    return device


@pytest.mark.req("4381-75", "4381-136", "4381-138")
def test_a_pod_gets_a_device_runs_finishes_and_gives_it_back(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with up(state, "--nodes", "4", "--profile", "gpu-8") as cluster:
        text = "\n".join(cluster.lines)
        assert "4 simulated nodes, 32 devices         ready" in text
        assert f"export KUBECONFIG={state}/kubeconfig" in text
        assert cluster.lines[-1].startswith("nodes 4/4 ready · devices 32 free, 0 held, 0 tainted · pods 0")
        assert cluster.server.request("GET", "/readyz").body == b"ok"
        kubectl = Kubectl(cluster.server, tmp_path)
        kubectl("apply", "-f", "-", stdin=CLAIM_AND_POD)
        kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/train", KUBECTL_PATIENCE)
        assert held_meanwhile(cluster.server).startswith("gpu-")
        eventually(lambda: "No resources found" in kubectl.run("get", "resourceclaims").stderr)
        nodes = run_here("get", "nodes", "--kubeconfig", cluster.server.kubeconfig)
        assert [line.split()[3] for line in nodes.stdout.splitlines()[1:]] == ["8"] * 4, nodes.stderr
        cluster.stop()


def test_started_again_it_goes_on_with_the_same_state(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with up(state, "--nodes", "3", "--profile", "network-fpga") as cluster:
        uids = {node["metadata"]["uid"] for node in cluster.server.request("GET", "/api/v1/nodes").json["items"]}
        cluster.stop()
    with up(state) as again:
        assert "3 simulated nodes, 16 devices" in "\n".join(again.lines)
        assert again.lines[-1].startswith("nodes 3/3 ready · devices 15 free, 0 held, 1 tainted")
        nodes = again.server.request("GET", "/api/v1/nodes").json["items"]
        assert {node["metadata"]["uid"] for node in nodes} == uids
        busy = run_dray("up", "--dir", state, "--port", "0")
        assert busy.returncode == 2
        assert f"pid {again.process.pid}" in busy.stderr
        again.stop()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--controllers", "nonsense"), "--controllers: unknown controller 'nonsense'"),
        (("--nodes", "1", "--profile", "gpu-9"), "--profile: there is no profile 'gpu-9'"),
        (("--token-file", "/nonexistent/tokens"), "/nonexistent/tokens"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_written(options: tuple[str, ...], why: str, tmp_path: Path) -> None:
    done = run_here("up", "--dir", tmp_path / "state", *options)
    assert done.returncode == 2
    assert done.stderr.startswith("dray: ")
    assert why in done.stderr
    assert not (tmp_path / "state").exists()


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run_dray("up", "--dir", tmp_path / "state", "--port", str(port))
    assert done.returncode == 2
    assert done.stderr == f"dray: port {port} is taken. Give --port, or --port 0 for a free one.\n"


@pytest.mark.parametrize(("starts", "says"), [(True, "still starting: they read what there is"), (False, "running")])
async def test_who_has_not_read_what_there_is_yet_is_not_said_to_be_ready(
    starts: bool, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if starts:
        monkeypatch.setattr("dray.all_in_one.cluster.READY_SECONDS", 0.0)
        monkeypatch.setattr(Cluster, "_is_settled", lambda _: False)
    server = ServerSettings(directory=tmp_path, port=0)
    made = Cluster(ClusterSettings(server=server, nodes=2, profile=load_profile("gpu-8")))
    try:
        await made.start_server()
        await made.start_components()
        announce_components(made, await made.totals())
    finally:
        await made.stop()
    told = capsys.readouterr().out
    assert says in told
    assert ("ready\n" in told) is not starts
