"""From which sets a placement chooses, and which clusters belong to them."""

from __future__ import annotations

from typing import Any

import pytest

from dray.placement import Event, Fleet, place
from placement_fleet import NOW, binding, cluster_set, decide, decisions, managed, placement, read, reasons

LABELLED = {"selectorType": "LabelSelector", "labelSelector": {"matchLabels": {"env": "prod"}}}


@pytest.mark.req("SVS-80")
@pytest.mark.parametrize(
    ("wanted", "bound", "chosen", "reason"),
    [
        ([], [], (), "NoManagedClusterSetBindings"),
        ([], ["nowhere"], (), "NoManagedClusterSetBindings"),
        (["set2"], ["set1"], (), "NoIntersection"),
        ([], ["empty"], (), "AllManagedClusterSetsEmpty"),
        ([], ["set1"], ("cluster1",), "AllDecisionsScheduled"),
        ([], ["set1", "set2"], ("cluster1", "cluster2"), "AllDecisionsScheduled"),
        (["set2", "set3"], ["set1", "set2"], ("cluster2",), "AllDecisionsScheduled"),
        ([], ["prod"], ("cluster2",), "AllDecisionsScheduled"),
        ([], ["set2", "prod"], ("cluster2",), "AllDecisionsScheduled"),
    ],
)
def test_the_bound_sets_that_the_spec_asks_for(
    wanted: list[str], bound: list[str], chosen: tuple[str, ...], reason: str
) -> None:
    sets = [cluster_set("set1"), cluster_set("set2"), cluster_set("empty"), cluster_set("prod", **LABELLED)]
    clusters = [managed("cluster1"), managed("cluster2", in_set="set2", labels={"env": "prod"})]
    fleet = Fleet([*clusters, *sets, *map(binding, bound)])
    result = place(fleet, placement(clusterSets=wanted), NOW)
    assert result.decisions == chosen
    assert reasons(result)["PlacementSatisfied"] == reason


@pytest.mark.parametrize(
    ("selector", "members"),
    [
        ({}, ["a"]),
        ({"selectorType": "ExclusiveClusterSetLabel"}, ["a"]),
        ({"selectorType": "LabelSelector"}, []),
        ({"selectorType": "LabelSelector", "labelSelector": {}}, ["a", "b"]),
        ({"selectorType": "LabelSelector", "labelSelector": {"matchLabels": {"env": "prod"}}}, ["b"]),
    ],
)
def test_the_members_of_a_set(selector: dict[str, Any], members: list[str]) -> None:
    clusters = [managed("a"), managed("b", in_set=None, labels={"env": "prod"})]
    made = cluster_set("set1", **selector)
    assert sorted(Fleet([made, *clusters]).in_sets(("set1",))) == members
    assert sorted(Fleet([*clusters, made]).in_sets(("set1",))) == members


def test_a_cluster_that_is_being_deleted_is_not_chosen_even_if_it_was() -> None:
    going = read(
        {
            "kind": "ManagedCluster",
            "metadata": {
                "name": "cluster1",
                "labels": {"cluster.open-cluster-management.io/clusterset": "set1"},
                "deletionTimestamp": "2026-06-01T11:00:00Z",
            },
        }
    )
    assert decide(placement(), going, managed("cluster2"), decisions("cluster1")).decisions == ("cluster2",)
    assert Fleet([going, cluster_set()]).in_sets(("set1",)) == frozenset()


@pytest.mark.parametrize(
    ("selector", "fault"),
    [
        ({"selectorType": "Magic"}, "selectorType 'Magic' is unknown"),
        (
            {"selectorType": "LabelSelector", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
            "needs at least one value",
        ),
    ],
)
def test_a_set_with_a_fault_holds_the_placement_instead_of_evicting(selector: dict[str, Any], fault: str) -> None:
    fleet = Fleet([cluster_set("set1", **selector), binding(), managed("cluster1"), decisions("cluster1")])
    result = place(fleet, placement(), NOW)
    assert result.decisions == ("cluster1",)
    assert result.conditions == {}
    assert result.held is not None
    assert fault in result.held


@pytest.mark.parametrize(
    "metadata",
    [
        {"annotations": {"cluster.open-cluster-management.io/experimental-scheduling-disable": "true"}},
        {"deletionTimestamp": "2026-06-01T11:00:00Z", "finalizers": ["example.com/x"]},
    ],
)
def test_a_placement_that_is_switched_off_or_going_is_left_as_it_is(metadata: dict[str, Any]) -> None:
    idle = read({"kind": "Placement", "metadata": {"name": "placement1", "namespace": "ns1", **metadata}})
    result = decide(idle, managed("cluster1"), managed("cluster2"), decisions("cluster2"))
    assert result.decisions == ("cluster2",)
    assert [group.clusters for group in result.groups] == [("cluster2",)]
    assert result.conditions == {}
    assert result.requeue_after is None


def test_clusters_move_between_sets_and_sets_come_and_go() -> None:
    fleet = Fleet([managed("a"), cluster_set("set1"), cluster_set("set2")])
    fleet.apply(Event(managed("a", in_set="set2")))
    assert fleet.in_sets(("set1",)) == frozenset()
    assert fleet.in_sets(("set2",)) == {"a"}
    fleet.apply(Event(cluster_set("set2"), deleted=True))
    assert fleet.sets_of("a") == frozenset()
    fleet.apply(Event(cluster_set("set2")))
    assert fleet.sets_of("a") == {"set2"}
    fleet.apply(Event(managed("a"), deleted=True))
    assert fleet.in_sets(("set2",)) == frozenset()
    assert fleet.apply(Event(managed("a"), deleted=True)) is None
