"""The engine: results for what changed, nothing for what did not."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from msgspec.structs import replace

from dray.api.cluster import PlacementStatus
from dray.api.references import ObjectName
from dray.placement import Engine, Event, FleetObject, Stage
from dray.placement import engine as engine_module
from dray.placement.decide import decide
from dray.placement.moments import moment_of
from placement_fleet import KEY, NOW, at, binding, cluster_set, decisions, managed, placement, read, scores, taint


def loaded(*objects: FleetObject, now: dt.datetime = NOW) -> Engine:
    engine = Engine()
    engine.load([cluster_set(), binding(), *objects], now)
    return engine


def changed(engine: Engine, obj: FleetObject, *, deleted: bool = False, now: dt.datetime = NOW) -> dict[str, Any]:
    """Placement name → new decisions."""
    return {key.name: result.decisions for key, result in engine.apply(Event(obj, deleted), now).items()}


def names(count: int) -> list[FleetObject]:
    return [managed(f"cluster{number}") for number in range(1, count + 1)]


ALL = placement("all")
TWO = placement("two", numberOfClusters=2)
EU = placement("eu", predicates=[{"requiredClusterSelector": {"labelSelector": {"matchLabels": {"region": "eu"}}}}])


def test_loading_decides_everything() -> None:
    engine = Engine()
    results = engine.load([cluster_set(), binding(), *names(3), ALL, TWO, EU], NOW)
    assert {key.name: result.decisions for key, result in results.items()} == {
        "all": ("cluster1", "cluster2", "cluster3"),
        # Decided last: all clusters carry one placement already, so the names decide.
        "two": ("cluster1", "cluster2"),
        "eu": (),
    }


@pytest.mark.req("OCM-15", "OCM-28")
def test_a_taint_reaches_those_that_selected_the_cluster_and_its_removal_those_that_want_it() -> None:
    engine = loaded(*names(3), ALL, TWO, EU)
    tainted = managed("cluster3", taint("a:NoSelect"))
    assert changed(engine, tainted) == {"all": ("cluster1", "cluster2")}
    assert changed(engine, tainted) == {}
    assert changed(engine, managed("cluster3"))["all"] == ("cluster1", "cluster2", "cluster3")


@pytest.mark.req("OCM-26", "OCM-27")
def test_an_evicted_cluster_is_replaced() -> None:
    engine = loaded(*names(3), TWO, decisions("cluster1", "cluster3", of="two"))
    assert changed(engine, managed("cluster1", taint("a:NoSelect"))) == {"two": ("cluster2", "cluster3")}
    assert changed(engine, managed("cluster1")) == {}


def test_a_new_cluster_joins_those_that_take_all_and_moves_nobody_else() -> None:
    engine = loaded(*names(2), ALL, TWO)
    assert changed(engine, managed("cluster3")) == {"all": ("cluster1", "cluster2", "cluster3")}


def test_a_cluster_that_wins_swaps_places_with_the_worst() -> None:
    add_on = {"type": "AddOn", "addOn": {"resourceName": "demo", "scoreName": "a"}}
    best = placement(
        "best", numberOfClusters=1, prioritizerPolicy={"configurations": [{"scoreCoordinate": add_on, "weight": 5}]}
    )
    engine = loaded(managed("cluster1"), scores("cluster2", a=50), best)
    assert changed(engine, managed("cluster2")) == {"best": ("cluster2",)}
    assert changed(engine, scores("cluster1", a=100)) == {"best": ("cluster1",)}
    assert changed(engine, scores("cluster1", a=100)) == {}
    assert changed(engine, scores("cluster1", a=100), deleted=True) == {"best": ("cluster2",)}


def test_another_amount_of_a_resource_moves_those_that_go_by_it() -> None:
    cpu = {"mode": "Exact", "configurations": [{"scoreCoordinate": {"builtIn": "ResourceAllocatableCPU"}}]}
    best = placement("best", numberOfClusters=1, prioritizerPolicy=cpu)

    def with_cpu(name: str, amount: int) -> FleetObject:
        return managed(name, allocatable={"cpu": str(amount)}, capacity={"cpu": "64"})

    engine = loaded(with_cpu("a", 4), with_cpu("b", 8), ALL, best)
    assert changed(engine, with_cpu("a", 16)) == {"best": ("a",)}
    assert changed(engine, with_cpu("a", 15)) == {}


def test_a_cluster_that_nobody_selected_can_move_others_when_it_goes() -> None:
    add_on = {"type": "AddOn", "addOn": {"resourceName": "demo", "scoreName": "a"}}
    configurations = [
        {"scoreCoordinate": {"builtIn": "ResourceAllocatableCPU"}},
        {"scoreCoordinate": add_on, "weight": 2},
    ]
    best = placement(numberOfClusters=1, prioritizerPolicy={"mode": "Exact", "configurations": configurations})
    huge = managed("huge", allocatable={"cpu": "100"}, capacity={"cpu": "100"})
    engine = loaded(
        managed("large", allocatable={"cpu": "10"}, capacity={"cpu": "100"}),
        managed("small", allocatable={"cpu": "1"}, capacity={"cpu": "100"}),
        huge,
        scores("small", a=15),
        scores("huge", a=-100),
        best,
    )
    result = engine.result(KEY)
    assert result is not None
    assert (result.decisions, result.scores) == (("small",), {"large": -81, "small": -70, "huge": -100})
    assert changed(engine, huge, deleted=True) == {"placement1": ("large",)}


def test_conditions_follow_the_first_and_the_last_cluster() -> None:
    engine = loaded(TWO, ALL)
    seen: list[list[str]] = []
    for event in (Event(managed("a")), Event(managed("b")), Event(managed("a"), True), Event(managed("b"), True)):
        engine.apply(event, NOW)
        results = [engine.result(ObjectName("ns1", name)) for name in ("two", "all")]
        seen.append([result.conditions["PlacementSatisfied"].reason for result in results if result is not None])
    assert seen == [
        ["NotAllDecisionsScheduled", "AllDecisionsScheduled"],
        ["AllDecisionsScheduled", "AllDecisionsScheduled"],
        ["NotAllDecisionsScheduled", "AllDecisionsScheduled"],
        ["AllManagedClusterSetsEmpty", "AllManagedClusterSetsEmpty"],
    ]


@pytest.mark.req("OCM-39")
def test_what_an_event_does_not_touch_is_not_decided_again(monkeypatch: pytest.MonkeyPatch) -> None:
    sets = [cluster_set(f"s{number}") for number in range(10)]
    bindings = [binding(f"s{number}", f"team{number}") for number in range(10)]
    clusters = [managed(f"cluster{number:04}", in_set=f"s{number % 10}") for number in range(1000)]
    placements = [
        placement(f"p{number}", f"team{number % 10}", numberOfClusters=3 if number % 2 else None)
        for number in range(100)
    ]
    engine = loaded(*sets, *bindings, *clusters, *placements)
    calls: list[ObjectName] = []
    original = decide

    def counted(fleet: Any, policy: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append(policy.placement)
        return original(fleet, policy, *args, **kwargs)

    monkeypatch.setattr(engine_module, "decide", counted)
    last = managed("cluster0990", taint("a:NoSelect"), in_set="s0")
    results = engine.apply(Event(last), NOW)
    assert {key.namespace for key in results} == {"team0"}
    assert len(results) == 10
    assert calls == [], "clusters that leave placements that take all need no new decision"


def test_statuses_and_heartbeats_change_nothing() -> None:
    engine = loaded(*names(2), ALL)
    beat = managed("cluster1")
    assert changed(engine, replace(beat, metadata=replace(beat.metadata, resource_version="7"))) == {}
    assert changed(engine, replace(ALL, status=PlacementStatus(number_of_selected_clusters=2))) == {}


def test_a_changed_spec_is_decided_anew_and_a_deleted_placement_forgotten() -> None:
    engine = loaded(*names(2), TWO)
    assert changed(engine, placement("two", numberOfClusters=1)) == {"two": ("cluster1",)}
    assert changed(engine, placement("two"), deleted=True) == {}
    assert engine.result(ObjectName("ns1", "two")) is None
    assert engine.fleet.ledger.loads == {}
    assert changed(engine, placement("two"), deleted=True) == {}


def test_bindings_and_sets_come_and_go() -> None:
    engine = loaded(*names(1), ALL, EU)
    assert changed(engine, binding(), deleted=True) == {"all": (), "eu": ()}
    assert changed(engine, binding())["all"] == ("cluster1",)
    assert changed(engine, cluster_set(), deleted=True)["all"] == ()
    assert changed(engine, cluster_set())["all"] == ("cluster1",)


def test_a_placement_that_wants_another_set_says_whether_any_is_bound() -> None:
    engine = loaded(placement(clusterSets=["set2"]))
    result = engine.apply(Event(cluster_set(), deleted=True), NOW)[KEY]
    assert result.conditions["PlacementSatisfied"].reason == "NoManagedClusterSetBindings"
    assert engine.apply(Event(cluster_set()), NOW)[KEY].conditions["PlacementSatisfied"].reason == "NoIntersection"


def test_groups_follow_the_labels_of_selected_clusters() -> None:
    canary = {"groupName": "canary", "groupClusterSelector": {"labelSelector": {"matchLabels": {"canary": "true"}}}}
    engine = loaded(*names(2), placement(decisionStrategy={"groupStrategy": {"decisionGroups": [canary]}}))
    results = engine.apply(Event(managed("cluster2", labels={"canary": "true"})), NOW)
    assert [(group.name, group.clusters) for group in results[KEY].groups] == [
        ("canary", ("cluster2",)),
        ("", ("cluster1",)),
    ]


@pytest.mark.req("OCM-20", "OCM-21", "OCM-23")
def test_time_alone_evicts() -> None:
    limited = placement(tolerations=[{"operator": "Exists", "tolerationSeconds": 90}])
    engine = loaded(managed("cluster1", taint("a:NoSelect")), managed("cluster2"), limited)
    assert engine.next_due == moment_of(at(90))
    assert engine.due(at(89)) == {}
    (result,) = engine.due(at(90)).values()
    assert result.decisions == ("cluster2",)
    assert engine.next_due is None


@pytest.mark.req("OCM-22", "SVS-78")
def test_the_time_to_wake_follows_taints() -> None:
    limited = placement(tolerations=[{"operator": "Exists", "tolerationSeconds": 90}])
    engine = loaded(managed("cluster1", taint("a:NoSelect", 10)), managed("cluster2"), limited)
    engine.apply(Event(managed("cluster2", taint("b:NoSelect", 50))), NOW)
    assert engine.next_due == moment_of(at(40))
    engine.apply(Event(managed("cluster2")), NOW)
    assert engine.next_due == moment_of(at(80))
    engine.apply(Event(managed("cluster1"), deleted=True), NOW)
    assert engine.next_due is None


def test_decisions_that_someone_changed_are_stated_again() -> None:
    engine = loaded(*names(2), ALL)
    assert changed(engine, decisions("cluster1", "cluster2", of="all")) == {}
    assert changed(engine, decisions("cluster1", of="all")) == {"all": ("cluster1", "cluster2")}
    assert changed(engine, decisions(of="all"), deleted=True) == {"all": ("cluster1", "cluster2")}
    assert changed(engine, decisions("cluster1", of="nobody")) == {}


def test_a_placement_that_is_switched_off_follows_what_others_write() -> None:
    annotations = {"cluster.open-cluster-management.io/experimental-scheduling-disable": "true"}
    idle = read({"kind": "Placement", "metadata": {"name": "all", "namespace": "ns1", "annotations": annotations}})
    engine = loaded(*names(2), ALL)
    assert changed(engine, idle) == {"all": ()}
    assert changed(engine, decisions("cluster9", of="all")) == {"all": ("cluster9",)}
    assert changed(engine, managed("cluster3")) == {}
    assert changed(engine, ALL) == {"all": ("cluster1", "cluster2", "cluster3")}


def test_it_explains_what_is_in_force() -> None:
    engine = loaded(*names(2), TWO)
    engine.apply(Event(managed("cluster2", taint("a:NoSelect"))), NOW)
    found = engine.explain(ObjectName("ns1", "two"), NOW)
    assert found is not None
    assert {reason.cluster: reason.stage for reason in found.clusters} == {
        "cluster1": Stage.SELECTED,
        "cluster2": Stage.TAINT,
    }
    assert engine.explain(ObjectName("ns1", "nobody"), NOW) is None


def test_what_is_not_part_of_a_fleet_is_refused() -> None:
    with pytest.raises(TypeError, match="not part of a fleet: str"):
        Engine().apply(Event("cluster1"), NOW)  # type: ignore[arg-type]
