"""The seed's examples, as its YAML has them."""

from __future__ import annotations

import datetime as dt

import pytest
import yaml

from dray.placement import Fleet, PlacementResult, place
from placement_fleet import binding, cluster_set, decisions, managed, read

ADDED = dt.datetime(2021, 7, 6, 7, 0, tzinfo=dt.UTC)

CLUSTER = """
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata:
  name: cluster1
  labels:
    cluster.open-cluster-management.io/clusterset: clusterset1
spec:
  hubAcceptsClient: true
  taints:
"""
MAINTAINING = '    - {key: maintaining, value: "true", effect: NoSelect, timeAdded: "2021-07-06T15:00:00+08:00"}\n'
GPU = '    - {key: gpu, value: "true", effect: NoSelectIfNew, timeAdded: "2021-07-06T15:00:00+08:00"}\n'
UNHEALTHY = '    - {key: unhealthy, effect: NoSelect, timeAdded: "2021-07-06T15:00:00+08:00"}\n'
UNREACHABLE = '    - {key: unreachable, effect: NoSelect, timeAdded: "2021-07-06T15:00:00+08:00"}\n'

PLACEMENT = """
apiVersion: cluster.open-cluster-management.io/v1alpha1
kind: Placement
metadata: {name: placement1, namespace: default}
spec:
"""
TOLERATES_GPU = '  tolerations:\n    - {key: gpu, value: "true", operator: Equal}\n'
FOR_90_SECONDS = "    - {key: unreachable, operator: Exists, tolerationSeconds: 90}\n"


def example(taints: str, spec: str, *, decided: bool, seconds: float) -> PlacementResult:
    """Place so many seconds after the taints were added, with cluster1 in the decisions or not."""
    before = [decisions("cluster1", namespace="default")] if decided else []
    objects = [
        read(yaml.safe_load(CLUSTER + taints)),
        managed("cluster2", in_set="clusterset1"),
        cluster_set("clusterset1"),
        binding("clusterset1", "default"),
        *before,
    ]
    wanted = read(yaml.safe_load(PLACEMENT + (spec or "  ~\n")))
    return place(Fleet(objects), wanted, ADDED + dt.timedelta(seconds=seconds))


@pytest.mark.req("OCM-14", "OCM-35", "OCM-38")
@pytest.mark.parametrize("decided", [True, False])
def test_example_1_maintenance(decided: bool) -> None:
    assert example(MAINTAINING, "", decided=decided, seconds=1).decisions == ("cluster2",)


@pytest.mark.req("OCM-34", "OCM-38")
def test_example_2_dedicated_clusters() -> None:
    assert example(GPU, TOLERATES_GPU, decided=False, seconds=1).decisions == ("cluster1", "cluster2")
    assert example(GPU, "", decided=False, seconds=1).decisions == ("cluster2",)
    assert example(GPU, "", decided=True, seconds=1).decisions == ("cluster1", "cluster2")


@pytest.mark.req("OCM-36", "OCM-42", "OCM-38")
def test_example_3_1_immediate_eviction() -> None:
    assert example(GPU + UNHEALTHY, TOLERATES_GPU, decided=True, seconds=0).decisions == ("cluster2",)


@pytest.mark.req("OCM-37", "OCM-44", "OCM-38")
def test_example_3_2_eviction_after_a_while() -> None:
    spec = TOLERATES_GPU + FOR_90_SECONDS
    tolerated = example(GPU + UNREACHABLE, spec, decided=True, seconds=45)
    assert tolerated.decisions == ("cluster1", "cluster2")
    assert tolerated.requeue_after == 45
    evicted = example(GPU + UNREACHABLE, spec, decided=True, seconds=90)
    assert evicted.decisions == ("cluster2",)
    assert evicted.requeue_after is None
