"""A server and a node agent as processes, with pods that really run; kubectl talks to them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from commands import run_here
from dray_process import DrayProcess
from live_server import Kubectl, LiveServer, running_server
from patience import PATIENCE, eventually

NODE = "real"


class RealNode:
    """A `dray node` process. Its containers end with it here."""

    def __init__(self, server: LiveServer, root: Path, *options: str) -> None:
        self.server = server
        self.root = root
        made = run_here("node-kubeconfig", NODE, "--dir", server.directory)
        assert made.returncode == 0, made.stderr
        self.kubeconfig = root.with_name("kubeconfig")
        self.kubeconfig.write_text(made.stdout)
        words = ["node", "--name", NODE, "--kubeconfig", str(self.kubeconfig), "--root", str(root)]
        words += ["--node-ip", "127.0.0.1", "--port", "0", "--cdi-dir", str(root / "cdi"), *options]
        self.log = root.with_name("log")
        with self.log.open("w") as log:
            self.process = DrayProcess(*words, stdout=log, stderr=subprocess.STDOUT)
        eventually(lambda: "ready" in self.log.read_text() or self.process.poll() is not None, "the node did not start")
        assert self.process.poll() is None, self.log.read_text()

    @property
    def port(self) -> int:
        """Where it serves."""
        node = self.server.request("GET", f"/api/v1/nodes/{NODE}").json
        found: int = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
        return found

    def stop(self) -> None:
        """Ends the agent and its containers."""
        self.process.terminate()
        self.process.wait(PATIENCE)
        for path in self.root.glob("pods/*/*/*.pid"):
            with contextlib.suppress(ProcessLookupError, ValueError):
                os.killpg(int(path.read_text()), signal.SIGKILL)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with running_server(tmp_path_factory.mktemp("server") / "state") as running:
        yield running


@pytest.fixture(scope="session")
def node(server: LiveServer) -> Iterator[RealNode]:
    with tempfile.TemporaryDirectory(prefix="console-") as directory:
        running = RealNode(server, Path(directory) / "n")
        try:
            yield running
        finally:
            running.stop()


@pytest.fixture(scope="session")
def kubectl(server: LiveServer, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    return Kubectl(server, tmp_path_factory.mktemp("home"))


@pytest.fixture
def namespace(server: LiveServer) -> str:
    return server.new_namespace()


@pytest.fixture(scope="session")
def sleeper(node: RealNode) -> str:
    """The namespace of a pod `p` that sleeps, for tests that need no other."""
    namespace = node.server.new_namespace()
    runner(node, namespace, [])("sleep 600", env=[{"name": "COLOR", "value": "blue"}], workingDir="/etc")
    return namespace


Run = Callable[..., str]


@pytest.fixture
def run(node: RealNode, namespace: str) -> Iterator[Run]:
    """Runs a pod with a script until it has a phase; its name."""
    made: list[str] = []
    yield runner(node, namespace, made)
    for name in made:
        node.server.request("DELETE", f"/api/v1/namespaces/{namespace}/pods/{name}?gracePeriodSeconds=0")


def runner(node: RealNode, namespace: str, made: list[str]) -> Run:
    """Starts pods in a namespace and notes their names."""
    server = node.server

    def start(script: str, name: str = "p", phase: str = "Running", **more: Any) -> str:
        spec = more.pop("spec", {})
        container = {"name": "main", "image": "none", "command": ["/bin/sh", "-c", textwrap.dedent(script)], **more}
        full = {"nodeName": NODE, "restartPolicy": "Never", "terminationGracePeriodSeconds": 0, **spec}
        full["containers"] = [container, *spec.get("containers", [])]
        body = {"metadata": {"name": name}, "spec": full}
        path = f"/api/v1/namespaces/{namespace}/pods"
        answer = server.request("POST", path, body)
        assert answer.code == 201, answer.body
        made.append(name)
        eventually(
            lambda: server.request("GET", f"{path}/{name}").json["status"].get("phase") == phase,
            f"pod {name} is not {phase}: {json.dumps(server.request('GET', f'{path}/{name}').json.get('status'))}",
        )
        return name

    return start
