"""Workloads as people run them, with stock kubectl on a `dray up` with simulated nodes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml

from patience import KUBECTL_PATIENCE, eventually
from taint_cluster import NODES, TaintCluster, taint_cluster

DRIVER = Path(__file__).parents[2] / "examples" / "drivers" / "fake_gpu.yaml"

TRAINERS = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: trainer}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: trainer}
spec:
  serviceName: trainer
  replicas: 3
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: trainer}}
  template:
    metadata: {labels: {app: trainer}}
    spec:
      terminationGracePeriodSeconds: 0
      resourceClaims: [{name: gpu, resourceClaimTemplateName: trainer}]
      containers: [{name: main, image: trainer, resources: {claims: [{name: gpu}]}}]
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TaintCluster]:
    with taint_cluster(tmp_path_factory.mktemp("workloads")) as running:
        yield running


def test_a_driver_is_deployed_on_every_node_updated_and_rolled_back(cluster: TaintCluster) -> None:
    def kubectl(*arguments: str) -> str:
        return cluster.kubectl("-n", "kube-system", *arguments)

    def rolled_out() -> list[dict[str, str]]:
        kubectl("rollout", "status", "daemonset/fake-gpu", KUBECTL_PATIENCE)
        pods = cluster.get("v1/namespaces/kube-system/pods")["items"]
        return [one["metadata"]["labels"] for one in pods if "deletionTimestamp" not in one["metadata"]]

    kubectl("apply", "-f", str(DRIVER))
    first = rolled_out()
    nodes = kubectl("get", "pods", "-o", "jsonpath={.items[*].spec.nodeName}").split()
    assert sorted(nodes) == [f"node-{number}" for number in range(1, NODES + 1)]
    kubectl("rollout", "restart", "daemonset/fake-gpu")
    second = rolled_out()
    hashes = [{labels["controller-revision-hash"] for labels in found} for found in (first, second)]
    assert len(hashes[0]) == len(hashes[1]) == 1
    assert hashes[0] != hashes[1]
    kubectl("rollout", "undo", "daemonset/fake-gpu")
    assert {labels["controller-revision-hash"] for labels in rolled_out()} == hashes[0]
    history = kubectl("rollout", "history", "daemonset/fake-gpu").split()
    assert [word for word in history if word.isdecimal()] == ["2", "3"]
    assert "daemonset.apps/fake-gpu" in kubectl("get", "controllerrevisions")
    kubectl("delete", "daemonset", "fake-gpu")


def test_trainers_are_drained_device_by_device_and_keep_their_names(cluster: TaintCluster) -> None:
    kubectl = cluster.kubectl
    kubectl("apply", "-f", "-", stdin=TRAINERS)
    kubectl("rollout", "status", "statefulset/trainer", KUBECTL_PATIENCE)

    def held() -> dict[str, tuple[str, str]]:
        """By trainer, pool and name of its device."""
        found = {}
        for claim in cluster.get("resource.k8s.io/v1/namespaces/default/resourceclaims")["items"]:
            results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
            for one in results:
                found[claim["metadata"]["ownerReferences"][0]["name"]] = (one["pool"], one["device"])
        return found

    def has_moved(name: str) -> bool:
        return held().get(name) not in (None, before[name])

    before = eventually(lambda: found if len(found := held()) == 3 else None)
    for name, (pool, device) in before.items():
        others = {trainer: place for trainer, place in held().items() if trainer != name}
        selector = {"driver": "gpu.example.com", "pool": pool, "device": device}
        taint = {"key": "example.com/maintenance", "effect": "NoExecute"}
        rule = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule", "metadata": {"name": f"drain-{name}"}}
        kubectl(
            "apply", "-f", "-", stdin=yaml.safe_dump({**rule, "spec": {"deviceSelector": selector, "taint": taint}})
        )
        eventually(partial(has_moved, name))
        kubectl("rollout", "status", "statefulset/trainer", KUBECTL_PATIENCE)
        assert {trainer: place for trainer, place in held().items() if trainer != name} == others
    assert cluster.pods("trainer") == ["trainer-0", "trainer-1", "trainer-2"]
    assert not set(before.values()) & set(held().values())
    kubectl("delete", "statefulset,resourceclaimtemplate", "trainer")


def test_a_cron_job_starts_jobs_and_can_be_paused_and_started_by_hand(cluster: TaintCluster) -> None:
    kubectl = cluster.kubectl
    kubectl("create", "cronjob", "tick", "--image=busybox", "--schedule=@every 1s", "--", "true")
    eventually(lambda: cluster.get("batch/v1/namespaces/default/cronjobs/tick")["status"].get("lastScheduleTime"))
    (job,) = cluster.get("batch/v1/namespaces/default/jobs")["items"]
    assert job["metadata"]["name"].startswith("tick-")
    kubectl("patch", "cronjob", "tick", "-p", '{"spec": {"suspend": true}}')
    kubectl("create", "job", "by-hand", "--from=cronjob/tick")
    assert "True" in kubectl("get", "cronjob", "tick").splitlines()[1]
    kubectl("delete", "cronjob", "tick")
    eventually(lambda: not cluster.get("batch/v1/namespaces/default/jobs")["items"])
