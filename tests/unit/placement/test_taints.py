"""What taints do to decisions, over time."""

from __future__ import annotations

import datetime as dt

import pytest

from dray.placement import place
from placement_fleet import KEY, NOW, at, decide, decisions, fleet, managed, placement, reasons, taint


@pytest.mark.req("OCM-15", "OCM-28", "OCM-35")
def test_no_select_removes_a_decided_cluster_and_keeps_new_ones_out() -> None:
    tainted = managed("cluster1", taint("maintaining=true:NoSelect"))
    assert decide(placement(), tainted, managed("cluster2"), decisions("cluster1", "cluster2")).decisions == (
        "cluster2",
    )
    assert decide(placement(), tainted, managed("cluster2")).decisions == ("cluster2",)
    untainted = decide(placement(), managed("cluster1"), managed("cluster2"), decisions("cluster2"))
    assert untainted.decisions == ("cluster1", "cluster2")


@pytest.mark.req("OCM-35")
def test_security_configuration_can_still_reach_a_cluster_in_maintenance() -> None:
    security = placement(tolerations=[{"key": "maintaining", "operator": "Exists"}])
    tainted = managed("cluster1", taint("maintaining=true:NoSelect"))
    assert decide(security, tainted, decisions("cluster1")).decisions == ("cluster1",)


@pytest.mark.req("OCM-16", "SVS-75")
def test_prefer_no_select_is_the_last_resort_whatever_the_scores() -> None:
    shunned = managed("cluster1", taint("a:PreferNoSelect"), allocatable={"cpu": "64"}, capacity={"cpu": "64"})
    poor = managed("cluster2", allocatable={"cpu": "1"}, capacity={"cpu": "64"})
    policy = {"configurations": [{"scoreCoordinate": {"builtIn": "ResourceAllocatableCPU"}, "weight": 10}]}
    assert decide(placement(numberOfClusters=1, prioritizerPolicy=policy), shunned, poor).decisions == ("cluster2",)
    assert decide(placement(numberOfClusters=2), shunned, poor).decisions == ("cluster1", "cluster2")
    assert decide(placement(numberOfClusters=1), shunned).decisions == ("cluster1",)


@pytest.mark.req("OCM-16", "OCM-25")
def test_a_tolerated_prefer_no_select_makes_no_difference() -> None:
    shunned = managed("cluster1", taint("a:PreferNoSelect"))
    tolerating = placement(numberOfClusters=1, tolerations=[{"key": "a", "operator": "Exists"}])
    assert decide(tolerating, shunned, managed("cluster2")).decisions == ("cluster1",)


@pytest.mark.req("OCM-47")
def test_prefer_no_select_evicts_nobody() -> None:
    shunned = managed("cluster2", taint("a:PreferNoSelect"))
    kept = decide(placement(numberOfClusters=1), managed("cluster1"), shunned, decisions("cluster2"))
    assert kept.decisions == ("cluster2",)


@pytest.mark.req("OCM-17", "OCM-34")
def test_no_select_if_new_spares_who_is_there() -> None:
    dedicated = managed("cluster1", taint("gpu=true:NoSelectIfNew"))
    assert decide(placement(), dedicated, managed("cluster2")).decisions == ("cluster2",)
    assert decide(placement(), dedicated, managed("cluster2"), decisions("cluster1")).decisions == (
        "cluster1",
        "cluster2",
    )
    mine = placement(tolerations=[{"key": "gpu", "operator": "Equal", "value": "true"}])
    assert decide(mine, dedicated).decisions == ("cluster1",)


@pytest.mark.req("OCM-25")
def test_tolerating_does_not_mean_wanting() -> None:
    tolerating = placement(numberOfClusters=1, tolerations=[{"operator": "Exists"}])
    both = (managed("cluster1"), managed("cluster2", taint("gpu:NoSelect")))
    assert decide(tolerating, *both).decisions == ("cluster1",)


@pytest.mark.req("OCM-26", "OCM-27")
@pytest.mark.parametrize("spares", [1, 2])
def test_an_evicted_cluster_is_replaced_at_once_if_there_is_another(spares: int) -> None:
    offline = managed("cluster1", taint("cluster.open-cluster-management.io/unreachable:NoSelect"))
    others = [managed(f"cluster{2 + number}") for number in range(spares)]
    moved = decide(placement(numberOfClusters=2), offline, *others, decisions("cluster1", "cluster2"))
    assert moved.decisions == ("cluster2", "cluster3")[:spares]
    assert reasons(moved)["PlacementSatisfied"] == (
        "AllDecisionsScheduled" if spares == 2 else "NotAllDecisionsScheduled"
    )


@pytest.mark.req("OCM-20", "OCM-22", "OCM-23", "OCM-27", "OCM-37")
def test_a_decision_lasts_as_long_as_the_toleration() -> None:
    going = placement(numberOfClusters=1, tolerations=[{"key": "a", "operator": "Exists", "tolerationSeconds": 90}])
    objects = (managed("cluster1", taint("a:NoSelect")), managed("cluster2"), decisions("cluster1"))
    before = decide(going, *objects, now=at(89.5))
    assert (before.decisions, before.requeue_after) == (("cluster1",), 0.5)
    after = decide(going, *objects, now=at(90))
    assert (after.decisions, after.requeue_after) == (("cluster2",), None)


@pytest.mark.req("OCM-20", "OCM-21", "SVS-78")
def test_the_first_expiry_over_all_taints_and_clusters_is_the_time_to_look_again() -> None:
    tolerations = [
        {"key": "a", "operator": "Exists", "tolerationSeconds": 120},
        {"key": "b", "operator": "Exists", "tolerationSeconds": 200},
    ]
    clusters = (
        managed("cluster1", taint("a:NoSelect", 10)),
        managed("cluster2", taint("a:NoSelect", 50), taint("b:NoSelect", 5)),
        managed("cluster3", taint("b:NoSelect", 100)),
        managed("cluster4", taint("c:NoSelect")),
    )
    everywhere = fleet(*clusters)
    wanted = placement(tolerations=tolerations)
    seen: list[tuple[tuple[str, ...], float | None]] = []
    now: dt.datetime | None = NOW
    while now is not None:
        result = place(everywhere, wanted, now)
        seen.append((result.decisions, result.requeue_after))
        everywhere.ledger.assume(KEY, result.decisions)
        now = None if result.requeue_after is None else now + dt.timedelta(seconds=result.requeue_after)
    assert seen == [
        (("cluster1", "cluster2", "cluster3"), 70),
        (("cluster1", "cluster3"), 30),
        (("cluster1",), 10),
        ((), None),
    ]


@pytest.mark.req("OCM-22", "SVS-78")
def test_a_cluster_that_is_not_needed_counts_for_the_time_to_look_again() -> None:
    wanted = placement(numberOfClusters=1, tolerations=[{"operator": "Exists", "tolerationSeconds": 60}])
    result = decide(wanted, managed("cluster1"), managed("cluster2", taint("a:NoSelect", 20)))
    assert (result.decisions, result.requeue_after) == (("cluster1",), 40)


@pytest.mark.req("OCM-24")
@pytest.mark.parametrize("seconds", [0, -1])
def test_no_seconds_left_means_evicted_at_once(seconds: int) -> None:
    wanted = placement(tolerations=[{"key": "a", "operator": "Exists", "tolerationSeconds": seconds}])
    assert decide(wanted, managed("cluster1", taint("a:NoSelect")), decisions("cluster1")).decisions == ()


@pytest.mark.req("OCM-41")
def test_a_matching_toleration_without_seconds_keeps_the_cluster() -> None:
    wanted = placement(tolerations=[{"key": "unreachable", "operator": "Exists"}])
    kept = decide(wanted, managed("cluster1", taint("unreachable:NoSelect", 10**8)), decisions("cluster1"))
    assert (kept.decisions, kept.requeue_after) == (("cluster1",), None)
