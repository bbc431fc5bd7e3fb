"""Gangs as people run them, with stock kubectl on a `dray up` with simulated nodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from patience import eventually
from taint_cluster import TaintCluster, taint_cluster

GANGS = Path(__file__).parents[2] / "examples" / "gangs"
GROUPS = "scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
CLAIMS = "resource.k8s.io/v1/namespaces/default/resourceclaims"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TaintCluster]:
    with taint_cluster(tmp_path_factory.mktemp("gangs")) as running:
        yield running


def pods(cluster: TaintCluster, app: str) -> list[Any]:
    found: list[Any] = cluster.get(f"v1/namespaces/default/pods?labelSelector=app%3D{app}")["items"]
    return found


def are_running(cluster: TaintCluster, app: str, count: int) -> bool:
    return [one["status"]["phase"] for one in pods(cluster, app)] == ["Running"] * count


def test_a_gang_waits_then_runs_and_leaves_as_a_whole(cluster: TaintCluster) -> None:
    kubectl = cluster.kubectl
    manifest = (GANGS / "training.yaml").read_text().replace("replicas: 4", "replicas: 3")
    kubectl("apply", "-f", "-", stdin=manifest)
    eventually(lambda: "Unschedulable" in kubectl("get", "podgroup", "training"))
    waiting = "waiting for more pods of PodGroup training: 3 of the 4 that it needs are there"
    assert waiting in kubectl("describe", "podgroup", "training")
    eventually(lambda: waiting in kubectl("describe", "pods", "-l", "app=training"))
    explained = cluster.dray("explain", "podgroup", "training")
    assert explained.exit_code == 1
    assert waiting in explained.stdout
    assert not [one for one in pods(cluster, "training") if "nodeName" in one["spec"]]
    assert not [one for one in cluster.get(CLAIMS)["items"] if "allocation" in one.get("status", {})]
    kubectl("scale", "replicaset", "training", "--replicas=4")
    eventually(lambda: are_running(cluster, "training", 4))
    line = eventually(lambda: found if "Scheduled" in (found := kubectl("get", "podgroup", "training")) else None)
    assert "Gang" in line
    assert cluster.dray("explain", "podgroup", "training").exit_code == 0
    before = {one["metadata"]["uid"] for one in pods(cluster, "training")}
    (claim, *_) = cluster.get(CLAIMS)["items"]
    device = claim["status"]["allocation"]["devices"]["results"][0]
    where = ("--node", device["pool"], "--device", device["device"])
    preview = cluster.dray("taint", "device", *where, "example.com/broken:NoExecute", "--dry-run").stdout
    assert "Would evict 4 pods" in preview
    assert cluster.dray("taint", "device", *where, "example.com/broken:NoExecute", "--yes").exit_code == 0

    def all_are_new() -> bool:
        now = {one["metadata"]["uid"] for one in pods(cluster, "training")}
        return are_running(cluster, "training", 4) and not now & before

    eventually(all_are_new)
    kubectl("delete", "-f", str(GANGS / "training.yaml"))
    eventually(lambda: not cluster.get(GROUPS)["items"])


def test_a_group_shares_a_claim(cluster: TaintCluster) -> None:
    kubectl = cluster.kubectl
    kubectl("apply", "-f", str(GANGS / "shared-claim.yaml"))
    eventually(lambda: are_running(cluster, "pair", 2))
    (claim,) = eventually(lambda: cluster.get(CLAIMS)["items"])
    assert claim["metadata"]["ownerReferences"][0]["kind"] == "PodGroup"
    assert [(one["resource"], one["name"]) for one in claim["status"]["reservedFor"]] == [("podgroups", "pair")]
    assert len({one["spec"]["nodeName"] for one in pods(cluster, "pair")}) == 1
    kubectl("delete", "podgroup", "pair", "--wait=false")
    assert cluster.get(GROUPS)["items"][0]["metadata"]["deletionTimestamp"]
    kubectl("delete", "pod", "-l", "app=pair")
    eventually(lambda: not cluster.get(GROUPS)["items"] and not cluster.get(CLAIMS)["items"])
