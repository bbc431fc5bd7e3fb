"""Two levels on one machine: a hub and three clusters as processes of their own, one of them killed, one stopped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dray.cli.main import app
from dray_process import run_dray
from hub_processes import UpProcess, hub_and_clusters
from live_server import Kubectl
from patience import eventually

GROUP = "cluster.open-cluster-management.io"
OBJECTS = """
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSet
metadata: {name: fleet}
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {name: fleet, namespace: default}
spec: {clusterSet: fleet}
---
apiVersion: cluster.open-cluster-management.io/v1alpha1
kind: Placement
metadata: {name: one, namespace: default}
spec: {numberOfClusters: 1}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: free-gpus, namespace: default}
spec:
  predicates:
    - requiredClusterSelector:
        claimSelector:
          matchExpressions:
            - {key: free.devices.dray.dev/gpu.example.com, operator: Exists}
            - {key: free.devices.dray.dev/gpu.example.com, operator: NotIn, values: ["0"]}
"""
ALL_GPUS_BROKEN = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceTaintRule",
    "metadata": {"name": "broken"},
    "spec": {
        "deviceSelector": {"driver": "gpu.example.com"},
        "taint": {"key": "broken", "effect": "NoSchedule"},
    },
}
API = f"/apis/{GROUP}"
CLUSTERS = f"{API}/v1/managedclusters"
PLACEMENTS = f"{API}/v1beta1/namespaces/default/placements"
DECISIONS = f"{API}/v1beta1/namespaces/default/placementdecisions"
RULES = "/apis/resource.k8s.io/v1/devicetaintrules"


def clusters_of(hub: UpProcess, placement: str) -> list[str]:
    found = hub.get(f"{DECISIONS}?labelSelector={GROUP}/placement={placement}")["items"]
    return [entry["clusterName"] for one in found for entry in one["status"].get("decisions", [])]


def available(hub: UpProcess) -> dict[str, str]:
    """By cluster, what the condition Available says."""
    return {
        one["metadata"]["name"]: condition["status"]
        for one in hub.get(CLUSTERS)["items"]
        for condition in one.get("status", {}).get("conditions", [])
        if condition["type"] == "ManagedClusterConditionAvailable"
    }


def taint_keys(hub: UpProcess, name: str) -> list[str]:
    return [one["key"] for one in hub.get(f"{CLUSTERS}/{name}")["spec"].get("taints", [])]


def merge(target: UpProcess, path: str, patch: object) -> None:
    assert target.server is not None
    done = target.server.request("PATCH", path, patch, "application/merge-patch+json")
    assert done.code == 200, done.body


def dray(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(one) for one in arguments])


@pytest.mark.req("OCM-26", "OCM-27", "OCM-30", "OCM-31", "OCM-33")
def test_a_fleet_on_one_machine(tmp_path: Path) -> None:
    with hub_and_clusters(tmp_path, "c1", "c2", "c3") as running:
        hub, names = running["hub"], ("c1", "c2", "c3")
        assert hub.server is not None
        eventually(lambda: available(hub) == dict.fromkeys(names, "True"), "all clusters are available")
        for name in names:
            merge(hub, f"{CLUSTERS}/{name}", {"metadata": {"labels": {f"{GROUP}/clusterset": "fleet"}}})
        Kubectl(hub.server, tmp_path)("apply", "-f", "-", stdin=OBJECTS)
        eventually(lambda: clusters_of(hub, "one") == ["c1"])
        eventually(lambda: clusters_of(hub, "free-gpus") == ["c1", "c2", "c3"])
        _look_around(hub)
        _taint_and_untaint(hub)
        _run_out_of_devices(running["c3"], hub)
        running["c1"].kill()
        eventually(lambda: f"{GROUP}/unreachable" in taint_keys(hub, "c1"), "the killed cluster is unreachable")
        eventually(lambda: clusters_of(hub, "one") in (["c2"], ["c3"]), "the workload moves")
        eventually(lambda: clusters_of(hub, "free-gpus") == ["c2"])
        running["c2"].stop()
        eventually(lambda: available(hub)["c2"] in ("False", "Unknown"), "the stopped cluster says goodbye")
        eventually(lambda: clusters_of(hub, "one") == ["c3"])
        running["c1"] = UpProcess(tmp_path / "c1", "--cluster", "c1", "--hub", str(hub.kubeconfig), "--nodes", "2")
        running["c1"].wait()
        eventually(lambda: taint_keys(hub, "c1") == [] and available(hub)["c1"] == "True", "it comes back")
        eventually(lambda: clusters_of(hub, "free-gpus") == ["c1"])


def _look_around(hub: UpProcess) -> None:
    """What people see of a healthy fleet."""
    shown = run_dray("get", "clusters", "--kubeconfig", hub.kubeconfig)
    rows = [line.split() for line in shown.stdout.splitlines()]
    assert rows[0][:3] == ["CLUSTER", "STATE", "SET"], shown
    assert rows[1] == ["c1", "available", "fleet", "gpu.example.com", "16/16", "–", "2"]
    listed = dray("placement", "list", "--kubeconfig", hub.kubeconfig)
    assert "default/one        yes        1 of 1    c1" in listed.stdout, listed.output
    described = dray("placement", "describe", "default/one", "--kubeconfig", hub.kubeconfig)
    assert described.exit_code == 0, described.output
    assert "default/one is satisfied." in described.stdout
    assert "group 0, one-decision-1: c1" in described.stdout
    explained = dray("explain", "placement", "default/one", "--kubeconfig", hub.kubeconfig)
    assert explained.exit_code == 0, explained.output
    assert "ranks 2 of 3, 1 wanted" in explained.stdout
    status = hub.get(f"{CLUSTERS}/c1")["status"]
    assert status["capacity"]["cpu"] == status["allocatable"]["cpu"] == "256"
    assert status["version"]["kubernetes"].startswith("v1.")
    claims = {claim["name"]: claim["value"] for claim in status["clusterClaims"]}
    assert claims["total.devices.dray.dev/gpu.example.com"] == "16"
    assert claims["tainted.devices.dray.dev/gpu.example.com"] == "0"


def _taint_and_untaint(hub: UpProcess) -> None:
    """An admin takes a cluster out of service, after a look."""
    where = ("--kubeconfig", hub.kubeconfig)
    looked = dray("taint", "cluster", "c1", "maintenance=fw:NoSelect", "--dry-run", *where)
    assert looked.exit_code == 0, looked.output
    assert "Cluster c1 is selected by 2 placements; 2 would lose it, 0 would get it." in looked.stdout
    assert "Nothing was changed." in looked.stdout
    assert taint_keys(hub, "c1") == []
    assert clusters_of(hub, "one") == ["c1"]
    done = dray("taint", "cluster", "c1", "maintenance=fw:NoSelect", *where)
    assert "Put back with: dray untaint cluster c1 maintenance:NoSelect" in done.stdout, done.output
    eventually(lambda: clusters_of(hub, "free-gpus") == ["c2", "c3"])
    back = dray("untaint", "cluster", "c1", "maintenance:NoSelect", *where)
    assert back.exit_code == 0, back.output
    eventually(lambda: clusters_of(hub, "free-gpus") == ["c1", "c2", "c3"])
    again = dray("untaint", "cluster", "c1", "maintenance:NoSelect", *where)
    assert (again.exit_code, again.stdout) == (1, "Cluster c1 has no taint maintenance:NoSelect; it has none at all.\n")


def _run_out_of_devices(cluster: UpProcess, hub: UpProcess) -> None:
    """A cluster whose devices are all tainted has none free, tells the hub, and is not chosen for its devices."""
    assert cluster.server is not None
    assert cluster.server.request("POST", RULES, ALL_GPUS_BROKEN).code == 201
    eventually(lambda: "c3" not in clusters_of(hub, "free-gpus"), "the hub hears of the devices")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--cluster", "c1"), "--cluster NAME and --hub KUBECONFIG go together"),
        (("--hub", "kubeconfig"), "--cluster NAME and --hub KUBECONFIG go together"),
        (("--cluster", "c1", "--hub", "/nonexistent/kubeconfig"), "--hub: "),
        (("--cluster", "Not_a_name", "--hub", "/nonexistent/kubeconfig"), "--cluster Not_a_name: "),
    ],
)
def test_half_a_hub_is_said_to_be_one(options: tuple[str, ...], why: str, tmp_path: Path) -> None:
    done = dray("up", "--dir", tmp_path / "state", "--port", "0", *options)
    assert done.exit_code == 2
    assert done.stderr.startswith(f"dray: {why}")
    assert done.stderr.count("\n") == 1


def test_a_hub_that_is_not_there_does_not_stop_the_cluster(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    nowhere.write_text(
        json.dumps(
            {
                "current-context": "x",
                "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
                "clusters": [{"name": "x", "cluster": {"server": "https://127.0.0.1:9"}}],
                "users": [{"name": "x", "user": {"token": "t"}}],
            }
        )
    )
    cluster = UpProcess(tmp_path / "state", "--cluster", "c1", "--hub", str(nowhere))
    try:
        cluster.wait()
        eventually(lambda: "hub agent of c1: hub: " in cluster.said())
        cluster.stop()
    finally:
        cluster.kill()
