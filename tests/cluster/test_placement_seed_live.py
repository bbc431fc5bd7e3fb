"""The seed's examples once more in real time: a hub as a process, its YAML through kubectl, short tolerations."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from hub_processes import UpProcess
from live_server import Kubectl
from patience import eventually

GROUP = "cluster.open-cluster-management.io"
DECISIONS = f"/apis/{GROUP}/v1beta1/namespaces/default/placementdecisions"

SETS = """
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSet
metadata: {name: clusterset1}
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {name: clusterset1, namespace: default}
spec: {clusterSet: clusterset1}
"""
CLUSTER = """
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata:
  name: NAME
  labels:
    cluster.open-cluster-management.io/clusterset: clusterset1
spec:
  hubAcceptsClient: true
"""
MAINTAINING = """  taints:
    - key: maintaining
      value: "true"
      effect: "NoSelect"
      timeAdded: 2021-07-06T15:00:00+08:00
"""
GPU = """  taints:
    - key: gpu
      value: "true"
      effect: "NoSelectIfNew"
      timeAdded: 2021-07-06T15:00:00+08:00
"""
UNHEALTHY = """    - key: unhealthy
      effect: "NoSelect"
      timeAdded: 2021-07-06T15:00:00+08:00
"""
UNREACHABLE = """    - key: unreachable
      effect: "NoSelect"
"""
PLACEMENT = """
apiVersion: cluster.open-cluster-management.io/v1alpha1
kind: Placement
metadata:
  name: placement1
  namespace: default
"""
TOLERATES_GPU = """spec:
  tolerations:
    - key: gpu
      value: "true"
      operator: Equal
"""
TOLERATES_A_WHILE = """    - key: unreachable
      operator: Exists
      tolerationSeconds: 4
"""


class Hub:
    """A hub with two clusters whose agents, the tests, say that all is well."""

    def __init__(self, process: UpProcess, kubectl: Kubectl) -> None:
        self.process = process
        self.kubectl = kubectl

    def apply(self, *documents: str) -> None:
        self.kubectl("apply", "-f", "-", stdin="\n---\n".join(documents))

    def decided(self) -> list[str]:
        found = self.process.get(f"{DECISIONS}?labelSelector={GROUP}/placement=placement1")["items"]
        return [entry["clusterName"] for one in found for entry in one["status"].get("decisions", [])]

    def expect(self, *names: str) -> None:
        eventually(lambda: self.decided() == list(names), f"{self.decided()} instead of {list(names)}")

    def report(self, name: str, status: str) -> None:
        """What the agent of a cluster says about it."""
        path = f"/apis/{GROUP}/v1/managedclusters/{name}/status"
        said = {
            "type": "ManagedClusterConditionAvailable",
            "status": status,
            "reason": "Reported",
            "message": "",
            "lastTransitionTime": "2026-06-01T12:00:00Z",
        }
        assert self.process.server is not None
        patch = json.dumps({"status": {"conditions": [said]}}).encode()
        done = self.process.server.request("PATCH", path, patch, "application/merge-patch+json")
        assert done.code == 200, done.body

    def taint_keys(self, name: str) -> list[str]:
        spec = self.process.get(f"/apis/{GROUP}/v1/managedclusters/{name}")["spec"]
        return [one["key"] for one in spec.get("taints", [])]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    home: Path = tmp_path_factory.mktemp("hub")
    process = UpProcess(home / "state")
    try:
        process.wait()
        assert process.server is not None
        hub = Hub(process, Kubectl(process.server, home))
        hub.apply(SETS, CLUSTER.replace("NAME", "cluster1"), CLUSTER.replace("NAME", "cluster2"))
        yield hub
    finally:
        process.kill()


@pytest.fixture
def hub(running: Hub) -> Iterator[Hub]:
    """Two clusters without taints, and no placement."""
    running.apply(*(CLUSTER.replace("NAME", name) + "  taints: []\n" for name in ("cluster1", "cluster2")))
    for name in ("cluster1", "cluster2"):
        running.report(name, "True")
    eventually(lambda: running.taint_keys("cluster1") == running.taint_keys("cluster2") == [])
    yield running
    running.kubectl("delete", "placement", "placement1")
    eventually(lambda: running.process.get(DECISIONS)["items"] == [])


@pytest.mark.req("OCM-01", "OCM-05", "OCM-07", "OCM-14", "OCM-35", "OCM-46")
def test_example_1(hub: Hub) -> None:
    hub.apply(PLACEMENT + "spec: ~\n")
    hub.expect("cluster1", "cluster2")
    hub.apply(CLUSTER.replace("NAME", "cluster1") + MAINTAINING)
    hub.expect("cluster2")


@pytest.mark.req("OCM-34", "OCM-36")
def test_examples_2_and_3_1(hub: Hub) -> None:
    hub.apply(CLUSTER.replace("NAME", "cluster1") + GPU, PLACEMENT + TOLERATES_GPU)
    hub.expect("cluster1", "cluster2")
    hub.apply(CLUSTER.replace("NAME", "cluster1") + GPU + UNHEALTHY)
    hub.expect("cluster2")


@pytest.mark.req("OCM-20", "OCM-23", "OCM-37", "OCM-43")
def test_example_3_2(hub: Hub) -> None:
    hub.apply(CLUSTER.replace("NAME", "cluster1") + GPU, PLACEMENT + TOLERATES_GPU + TOLERATES_A_WHILE)
    hub.expect("cluster1", "cluster2")
    hub.apply(CLUSTER.replace("NAME", "cluster1") + GPU + UNREACHABLE)
    hub.expect("cluster2")
    spec = hub.process.get(f"/apis/{GROUP}/v1/managedclusters/cluster1")["spec"]
    added = next(one["timeAdded"] for one in spec["taints"] if one["key"] == "unreachable")
    assert time.time() >= datetime.fromisoformat(added).timestamp() + 4, "not before the toleration has run out"


@pytest.mark.req("OCM-24", "OCM-29", "OCM-30", "OCM-31", "OCM-38")
def test_the_states_of_clusters_become_taints_and_evict(hub: Hub) -> None:
    hub.apply(PLACEMENT + "spec: {}\n")
    hub.expect("cluster1", "cluster2")
    for status, key in (("False", f"{GROUP}/unavailable"), ("Unknown", f"{GROUP}/unreachable")):
        hub.report("cluster1", status)
        eventually(lambda wanted=key: hub.taint_keys("cluster1") == [wanted])  # type: ignore[misc]
        hub.expect("cluster2")
    hub.report("cluster1", "True")
    hub.expect("cluster1", "cluster2")
