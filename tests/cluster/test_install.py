"""An installation on a real server: everything is taken, and each component can do its work as its own account."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from dray.cli.shapes import SHAPES
from dray_process import DrayProcess, run_dray
from live_server import Kubectl, LiveServer, running_server
from patience import eventually

SETTINGS = ("--set", "controllers.evictions=instead", "--set", "crds.deviceTaintRules=true")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with running_server(tmp_path_factory.mktemp("install") / "state") as server:
        yield server


class Installed:
    """The programs of the Deployments, as their accounts, outside of a cluster."""

    def __init__(self, server: LiveServer, kubectl: Kubectl, directory: Path, objects: list[Any]) -> None:
        self.logs = {}
        self._processes = []
        for one in objects:
            if one["kind"] == "Deployment":
                name = one["metadata"]["name"]
                config = yaml.safe_load(server.kubeconfig.read_text())
                config["users"][0]["user"] = {"token": kubectl("create", "token", name, "-n", "dray-system").strip()}
                path = directory / f"{name}.kubeconfig"
                path.write_text(yaml.safe_dump(config))
                words = one["spec"]["template"]["spec"]["containers"][0]["args"]
                listens = "--metrics-port" if "--metrics-port" in words else "--port"
                words[words.index(listens) + 1] = "0"
                self.logs[name] = directory / f"{name}.log"
                with self.logs[name].open("w") as log:
                    self._processes.append(DrayProcess(*words, "--kubeconfig", path, stdout=log, stderr=log))

    def stop(self) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait()


READER = ("ClusterRole", "dray-reader")


def test_what_is_installed_works_with_its_own_rights(server: LiveServer, tmp_path: Path) -> None:
    kubectl = Kubectl(server, tmp_path)
    before = run_dray("doctor", "--kubeconfig", server.kubeconfig, "-o", "json")
    msgspec.json.decode(before.stdout, type=SHAPES["Diagnosis"].shape)
    printed = run_dray("install", *SETTINGS).stdout
    kubectl("apply", "-f", "-", stdin=printed)
    for name in ("resourceslicepatches.dray.dev", "devicetaintrules.dray.dev"):
        kubectl("wait", "--for=condition=Established", f"crd/{name}")
    installed = Installed(server, kubectl, tmp_path, list(yaml.safe_load_all(printed)))
    try:
        for name, log in installed.logs.items():
            said = "http://127.0.0.1:" if name == "dray-dashboard" else "leading as"
            eventually(lambda log=log, said=said: said in log.read_text(), f"{name} did not begin")  # type: ignore[misc]
        node: dict[str, Any] = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}}
        status = {"allocatable": {"cpu": "4", "pods": "10"}, "conditions": [{"type": "Ready", "status": "True"}]}
        pool = {"name": "node-1", "generation": 1, "resourceSliceCount": 1}
        spec = {
            "driver": "d.example.com",
            "nodeName": "node-1",
            "pool": pool,
            "devices": [{"name": "a"}, {"name": "b"}],
        }
        published = _object("resource.k8s.io/v1", "ResourceSlice", "node-1", spec)
        attributes = {"admin.example.com/good": {"bool": True}}
        patch = _object(
            "dray.dev/v1alpha1",
            "ResourceSlicePatch",
            "good",
            {"devices": {"filter": {"driver": "d.example.com", "device": "b"}, "attributes": attributes}},
        )
        chosen = {"cel": {"expression": 'device.attributes["admin.example.com"].?good.orValue(false)'}}
        device_class = _object("resource.k8s.io/v1", "DeviceClass", "good", {"selectors": [chosen]})
        exactly = {"deviceClassName": "good", "allocationMode": "ExactCount", "count": 1}
        claim = _object(
            "resource.k8s.io/v1", "ResourceClaim", "c", {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
        )
        containers = [{"name": "c", "image": "i", "resources": {"claims": [{"name": "c"}]}}]
        claims = [{"name": "c", "resourceClaimName": "c"}]
        pod = _object(
            "v1", "Pod", "p", {"schedulerName": "dray-scheduler", "containers": containers, "resourceClaims": claims}
        )
        kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all([node, published, patch, device_class, claim, pod]))
        kubectl("patch", "node", "node-1", "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
        kubectl("patch", "node", "node-1", "--type=merge", "-p", '{"spec": {"taints": null}}')
        eventually(lambda: kubectl("get", "pod", "p", "-o", "jsonpath={.spec.nodeName}") == "node-1", "it has no node")
        allocated = "jsonpath={.status.allocation.devices.results[*].device}"
        assert kubectl("get", "resourceclaim", "c", "-o", allocated) == "b"  # what the patch says, counts
        taint = {"key": "example.com/out", "effect": "NoExecute", "evictionsPerSecond": 100}
        rule = {"deviceSelector": {"deviceClassName": "good"}, "taint": taint}
        kubectl("apply", "-f", "-", stdin=yaml.safe_dump(_object("dray.dev/v1alpha1", "DeviceTaintRule", "out", rule)))
        eventually(lambda: '"deletionTimestamp"' in kubectl("get", "pod", "p", "-o", "json"), "it was not evicted")
        both = [kubectl("get", f"devicetaintrules.{group}", "-o", "name") for group in ("dray.dev", "resource.k8s.io")]
        assert [one.strip() for one in both] == [
            f"devicetaintrule.{group}/out" for group in ("dray.dev", "resource.k8s.io")
        ]
        told = run_dray("doctor", "--kubeconfig", server.kubeconfig)
        assert "held by" in told.stdout
        assert told.returncode == 0, told.stdout
    finally:
        installed.stop()
    for log in installed.logs.values():
        assert "forbidden" not in log.read_text(), log.read_text()
    kubectl("delete", "--wait=false", "-f", "-", stdin=run_dray("uninstall", *SETTINGS).stdout)
    assert "resourceslicepatches.dray.dev" in kubectl("get", "crd", "-o", "name")


def test_doctor_finds_who_leads_wherever_dray_is_installed_and_believes_no_tenant(
    server: LiveServer, tmp_path: Path
) -> None:
    kubectl = Kubectl(server, tmp_path)
    printed = yaml.safe_load_all(run_dray("install", "--set", "namespace=gpus").stdout)
    wanted = [one for one in printed if (one["kind"], one["metadata"]["name"]) in (("Namespace", "gpus"), READER)]
    kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(wanted))
    kubectl("create", "namespace", "tenant")
    kubectl("create", "serviceaccount", "reader", "-n", "tenant")
    kubectl("create", "clusterrolebinding", "readers", "--clusterrole=dray-reader", "--serviceaccount=tenant:reader")
    spec = {"holderIdentity": "me", "leaseDurationSeconds": 3600, "renewTime": "2999-01-01T00:00:00.000000Z"}
    lease = _object("coordination.k8s.io/v1", "Lease", "dray-controllers", spec)
    for namespace in ("gpus", "tenant"):
        kubectl("create", "-n", namespace, "-f", "-", stdin=json.dumps(lease))
    config = yaml.safe_load(server.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": kubectl("create", "token", "reader", "-n", "tenant").strip()}
    (tmp_path / "reader").write_text(yaml.safe_dump(config))
    for who in (server.kubeconfig, tmp_path / "reader"):
        leases = json.loads(run_dray("doctor", "--kubeconfig", who, "-o", "json").stdout)["leases"]
        assert leases.pop("gpus/dray-controllers") == "me"
        assert not [name for name in leases if name.startswith("tenant/")]


def _object(version: str, kind: str, name: str, spec: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}
