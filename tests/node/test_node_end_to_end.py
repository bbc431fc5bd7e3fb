"""`dray up`, two `dray node` and the example driver on each, all processes of their own, driven by kubectl."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commands import run_here
from dray_process import DrayProcess
from live_server import Kubectl, LiveServer, running_server
from patience import PATIENCE, eventually

FAKE_GPU = Path(__file__).parents[2] / "examples" / "drivers" / "fake_gpu.py"

CLASS = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: whole-gpu}
spec:
  selectors:
  - cel: {expression: 'device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].partition == "whole"'}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpu, namespace: default}
spec:
  devices:
    requests: [{name: gpu, exactly: {deviceClassName: whole-gpu}}]
    config: [{opaque: {driver: gpu.example.com, parameters: {env: {FROM_CLAIM: "yes"}}}}]
"""

POD = """
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: default}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 5
  containers:
  - name: main
    image: none
    command: [/bin/sh, -c, 'env | sort; exec sleep 1000']
    resources: {claims: [{name: gpu}]}
  resourceClaims: [{name: gpu, resourceClaimName: gpu}]
"""


class Machine:
    """One node: its agent and its driver, both processes."""

    def __init__(self, name: str, server: LiveServer, directory: Path) -> None:
        self.name = name
        self.root = directory / name
        self.cdi = self.root / "cdi"
        self.health = self.root / "health.json"
        self._server = server
        self._processes: dict[str, DrayProcess | subprocess.Popen[str]] = {}
        self.cdi.mkdir(parents=True)
        self._kubeconfig = self.root / "kubeconfig"
        made = run_here("node-kubeconfig", name, "--dir", server.directory)
        assert made.returncode == 0, made.stderr
        self._kubeconfig.write_text(made.stdout)

    def start_agent(self) -> None:
        """`dray node`, with a node's rights only."""
        options = ["--name", self.name, "--root", str(self.root), "--cdi-dir", str(self.cdi), "--metrics-port", "0"]
        words = ("node", "--kubeconfig", str(self._kubeconfig), *options)
        self._processes["agent"] = DrayProcess(*words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def wait_for_agent(self) -> None:
        """Until the agent says that it is ready."""
        output = self._processes["agent"].stdout
        assert output is not None
        line = output.readline()
        assert "ready" in line, line

    def start_driver(self) -> None:
        """The example driver with one board."""
        command = [
            sys.executable,
            str(FAKE_GPU),
            "--node-name",
            self.name,
            "--kubeconfig",
            str(self._server.kubeconfig),
        ]
        command += ["--plugin-dir", str(self.root / "plugins" / "gpu.example.com"), "--cdi-dir", str(self.cdi)]
        command += ["--registry-dir", str(self.root / "plugins_registry")]
        environment = {**os.environ, "FAKE_GPU_HEALTH": str(self.health), "FAKE_GPU_BOARDS": "1"}
        (self.root / "plugins" / "gpu.example.com").mkdir(parents=True, exist_ok=True)
        self._processes["driver"] = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True
        )

    def stop(self, what: str) -> None:
        """Ends the agent or the driver, as an operator would."""
        process = self._processes.pop(what, None)
        if process is not None:
            process.terminate()
            process.wait(PATIENCE)
            if process.stdout is not None:
                process.stdout.close()

    def log_of(self, uid: str) -> str:
        """What a container wrote."""
        path = self.root / "pods" / uid / "main" / "0.log"
        return path.read_text() if path.exists() else ""


@contextlib.contextmanager
def cluster() -> Iterator[tuple[Kubectl, dict[str, Machine]]]:
    """A control plane and two machines."""
    with tempfile.TemporaryDirectory(prefix="e2e-") as directory:
        base = Path(directory)
        with running_server(base / "state", "--nodes", "0", program="up") as server:
            machines = {name: Machine(name, server, base) for name in ("node-a", "node-b")}
            kubectl = Kubectl(server, base)
            try:
                for machine in machines.values():
                    machine.start_agent()
                for machine in machines.values():
                    machine.wait_for_agent()
                    machine.start_driver()
                yield kubectl, machines
            finally:
                kubectl.run("delete", "pods", "--all", "--force", "--grace-period=0")
                eventually(lambda: not [*base.glob("node-*/pods/*")], "all containers to end")
                for machine in machines.values():
                    machine.stop("driver")
                    machine.stop("agent")


@pytest.mark.req("4381-161", "4381-162", "4381-224", "4381-238", "4381-153", "5055-84")
def test_a_pod_gets_its_device_loses_it_to_a_taint_and_its_claim_moves() -> None:
    with cluster() as (kubectl, machines):
        kubectl("apply", "-f", "-", stdin=CLASS)
        eventually(
            lambda: len(kubectl("get", "resourceslices", "-o", "name").split()) >= 4, "the slices of both drivers"
        )

        # A pod sees what the driver injects.
        kubectl("apply", "-f", "-", stdin=POD % "first")
        first = running(kubectl, "first")
        here = machines[first["spec"]["nodeName"]]
        there = next(machine for machine in machines.values() if machine is not here)
        seen = eventually(lambda: here.log_of(first["metadata"]["uid"]), "the log")
        assert "GPU_GPU_0=GPU-0000-gpu-0" in seen
        assert "FROM_CLAIM=yes" in seen
        assert [path for path in here.cdi.iterdir() if path.suffix == ".json"]

        # The device gets warm: nobody is evicted, and both the pod and its claim say so.
        here.health.write_text(json.dumps({"gpu-0": "NoSchedule"}))
        eventually(lambda: health_in_claim(kubectl) == ["False"], "the health of the device in its claim")
        eventually(lambda: health_in_pod(kubectl, "first") == ["Unhealthy"], "the health of the device in its pod")
        here.health.unlink()
        eventually(lambda: health_in_claim(kubectl) == ["True"], "the device to be well again in its claim")
        eventually(lambda: health_in_pod(kubectl, "first") == ["Healthy"], "the device to be well again in its pod")
        first = running(kubectl, "first")

        # The driver restarts, then the agent; the pod does not notice.
        here.stop("driver")
        here.start_driver()
        here.stop("agent")
        here.start_agent()
        here.wait_for_agent()
        eventually(lambda: slices_of(kubectl, here.name), "the driver to publish again")
        # Until the driver has told the new agent of its devices, their health is unknown.
        before = first["status"]["containerStatuses"]
        eventually(
            lambda: running(kubectl, "first")["status"]["containerStatuses"] == before, "the pod to be as before"
        )

        # Its device gets sick: the pod is evicted, unprepared, and the claim is free.
        here.health.write_text(json.dumps({"gpu-0": "NoExecute"}))
        eventually(lambda: not kubectl("get", "pods", "-o", "name", "--ignore-not-found").strip(), "the eviction")
        assert not [path for path in here.cdi.iterdir() if path.suffix == ".json"]
        eventually(lambda: "allocation" not in claim(kubectl).get("status", {}), "the claim to be free")

        # The next pod with the same claim runs on the other machine.
        kubectl("apply", "-f", "-", stdin=POD % "second")
        second = running(kubectl, "second")
        assert second["spec"]["nodeName"] == there.name
        assert "GPU_GPU_0=GPU-0000-gpu-0" in eventually(lambda: there.log_of(second["metadata"]["uid"]), "the log")


def running(kubectl: Kubectl, name: str) -> dict[str, Any]:
    """A pod, once it runs."""

    def look() -> dict[str, Any] | None:
        found: dict[str, Any] = json.loads(kubectl("get", "pod", name, "-o", "json"))
        return found if found["status"].get("phase") == "Running" else None

    try:
        result: dict[str, Any] = eventually(look, f"pod {name} to run")
    except AssertionError:
        raise AssertionError(kubectl("describe", "pod", name)) from None
    return result


def claim(kubectl: Kubectl) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(kubectl("get", "resourceclaim", "gpu", "-o", "json"))
    return found


def health_in_claim(kubectl: Kubectl) -> list[str]:
    """What the driver says of the devices."""
    entries = claim(kubectl)["status"].get("devices", ())
    return [one["status"] for entry in entries for one in entry["conditions"] if one["type"] == "Healthy"]


def health_in_pod(kubectl: Kubectl, name: str) -> list[str]:
    """What the node says of the devices."""
    statuses = running(kubectl, name)["status"]["containerStatuses"][0].get("allocatedResourcesStatus", ())
    return [one["health"] for status in statuses for one in status["resources"]]


def slices_of(kubectl: Kubectl, node: str) -> list[str]:
    return kubectl("get", "resourceslices", "-o", "name", f"--field-selector=spec.nodeName={node}").split()
