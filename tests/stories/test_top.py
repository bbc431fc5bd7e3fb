"""`dray top` in a real terminal of 80×24: an admin looks, filters, asks why, takes a device out and puts it back."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from dray.testing import Cluster, cluster
from dray_process import DRAY, run_dray
from patience import PATIENCE

CLASS = "gpu.example.com"


class Terminal:
    """What somebody sees: reads the few control sequences that `dray top` writes."""

    def __init__(self, screen: int, process: subprocess.Popen[bytes]) -> None:
        self.screen = screen
        self.process = process
        self.written = ""

    def read(self, seconds: float) -> None:
        """What is written within a time."""
        if select.select([self.screen], [], [], seconds)[0]:
            with contextlib.suppress(OSError):  # nobody is at the other end any more
                self.written += os.read(self.screen, 65536).decode()

    def text(self) -> str:
        """What is on the screen."""
        last = self.written.rpartition("\x1b[2J")[2]
        rows: dict[int, str] = {}
        for row, text in re.findall(r"\x1b\[(\d+);1H\x1b\[2K((?:(?!\x1b\[\d+;1H).)*)", last, re.DOTALL):
            rows[int(row)] = re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", text)
        return "\n".join(rows[row] for row in sorted(rows))

    def sees(self, *texts: str) -> str:
        """Waits until all of them are on the screen."""
        end = time.monotonic() + PATIENCE
        while not all(text in self.text() for text in texts):
            assert time.monotonic() < end, f"{texts} are not on the screen, which says:\n{self.text()}"
            self.read(0.2)
        return self.text()

    def type(self, keys: str) -> None:
        """Presses keys."""
        os.write(self.screen, keys.encode())

    def ends(self) -> int:
        """Waits until it has ended."""
        end = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            assert time.monotonic() < end, self.text()
            self.read(0.1)
        self.read(0)
        return self.process.returncode


@contextlib.contextmanager
def _top(here: Cluster, *options: str, **environment: str) -> Iterator[Terminal]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    command = [DRAY, "top", "--kubeconfig", str(here.kubeconfig), *options]
    known = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
    before = termios.tcgetattr(theirs)
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env={**known, "TERM": "xterm", **environment}
    )
    try:
        yield Terminal(ours, process)
        assert termios.tcgetattr(theirs) == before, "the terminal is not as it was"
    finally:
        process.terminate()
        process.wait(PATIENCE)
        os.close(ours)
        os.close(theirs)


@pytest.fixture(scope="module")
def here() -> Iterator[Cluster]:
    with cluster(nodes=2, profile="gpu-8") as found:
        for name, count in (("train", 3), ("huge", 9)):
            for document in _workload(name, count):
                found.apply(document)
        found.wait("pod/train", lambda one: one.get("status", {}).get("phase") == "Running", timeout=PATIENCE)
        yield found


def _workload(name: str, count: int) -> Iterator[str]:
    claim = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": CLASS, "count": count}}]}}
    meta = {"name": name, "namespace": "default"}
    template = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": meta}
    yield yaml.safe_dump({**template, "spec": {"spec": claim}})
    container = {"name": "main", "image": "train", "resources": {"claims": [{"name": "gpu"}]}}
    claims = [{"name": "gpu", "resourceClaimTemplateName": name}]
    spec = {"containers": [container], "resourceClaims": claims}
    yield yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})


def test_an_admin_looks_after_a_fleet_from_a_terminal(here: Cluster) -> None:
    with _top(here) as terminal:
        terminal.sees("16 devices: . 13 free  # 3 held", "3 Pending 1", "###.....")
        terminal.type("3\r")
        terminal.sees("default/huge is pending", "too few devices")
        terminal.type("\x1b")
        terminal.sees("> default/huge")
        terminal.type("2/")
        terminal.sees("filter (CEL):")
        terminal.type(f'device.attributes["{CLASS}"].index < 1\r')
        terminal.sees("devices of which device.attributes")
        assert re.findall(r" (gpu-\d) ", terminal.text()) == ["gpu-0", "gpu-0"]
        terminal.type("s")
        terminal.sees("sorted by state")
        terminal.type("g\r")
        terminal.sees("Held by", "default/train", "slice")
        terminal.type("\x1bd")
        terminal.sees("Take out of service", "Would evict 1 pod", "y apply")
        assert here.list("devicetaintrules") == []
        terminal.type("y")
        terminal.sees("1 rule written", "maintenance:NoE")
        assert len(here.list("devicetaintrules")) == 1
        terminal.type("uy")
        terminal.sees("back in service", "Nothing is out of service")
        assert here.list("devicetaintrules") == []
        terminal.type("q")
        assert terminal.ends() == 0
        assert "\x1b[32m" in terminal.written
        assert terminal.written.rstrip().endswith("\x1b[?25h\x1b[?1049l")


def test_it_has_no_colour_if_nobody_wants_it_and_ends_when_told(here: Cluster) -> None:
    with _top(here, "--view", "devices", NO_COLOR="1") as terminal:
        terminal.sees("> node-1", "gpu-7")
        assert re.search(r"\x1b\[[0-9;]*3\dm", terminal.written.partition("\x1b[?1049h")[2]) is None
        terminal.process.terminate()
        assert terminal.ends() == 0
        assert terminal.written.rstrip().endswith("\x1b[?1049l")


def test_without_a_terminal_it_prints_once_or_says_why_not(here: Cluster) -> None:
    def run(*options: str) -> subprocess.CompletedProcess[str]:
        return run_dray("top", "--kubeconfig", here.kubeconfig, *options)

    refused = run()
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "needs a terminal. Give --once" in refused.stderr
    wrong = run("--once", "--cel", "device.nonsense")
    assert wrong.returncode == 2
    assert "--cel: undefined field 'nonsense'" in wrong.stderr
    shown = run("--once", "--view", "devices")
    assert shown.returncode == 0
    assert sum(" gpu-" in line for line in shown.stdout.splitlines()) == 16
    assert "\x1b" not in shown.stdout


def test_a_cluster_that_is_not_there_is_told(tmp_path: Path) -> None:
    nowhere = {
        "clusters": [{"name": "x", "cluster": {"server": "http://127.0.0.1:1"}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "users": [{"name": "x", "user": {}}],
        "current-context": "x",
    }
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(nowhere))
    done = run_dray("top", "--once", "--kubeconfig", path)
    assert done.returncode == 2
    assert "cannot reach the cluster" in done.stderr
    assert "Traceback" not in done.stderr
