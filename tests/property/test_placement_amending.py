"""Keeping a decision current gives what deciding anew gives: event by event, with what was decided before the event.

Other placements stand still here, as PlacementDecisions that nobody speaks for; they make the loads that Balance sees.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dray.api.cluster import ManagedCluster, Placement, PlacementDecision, Taint
from dray.placement import Engine, Event, Fleet, FleetObject, PlacementResult
from dray.placement.decide import decide
from dray.placement.moments import moment_of
from dray.placement.policy import read_policy
from placement_fleet import KEY, NOW, at, binding, cluster_set, decisions, managed, placement, scores, taint

NAMES = tuple(f"cluster{number}" for number in range(9))
EFFECTS = ("NoSelect", "PreferNoSelect", "NoSelectIfNew")
SETS: tuple[FleetObject, ...] = (cluster_set(), binding(), cluster_set("set2"), binding("set2"))

TAINTS = st.builds(
    lambda key, effect, age: taint(f"{key}:{effect}", age),
    st.sampled_from("ab"),
    st.sampled_from(EFFECTS),
    st.sampled_from([0, 30, 200]),
)


@st.composite
def clusters(draw: st.DrawFn) -> ManagedCluster:
    marks: list[Taint] = draw(st.lists(TAINTS, max_size=2))
    amounts = {"cpu": str(draw(st.integers(1, 5))), "memory": f"{draw(st.integers(1, 3))}Gi"}
    return managed(
        draw(st.sampled_from(NAMES)),
        *marks,
        in_set=draw(st.sampled_from(["set1", "set1", "set1", "set2", None])),
        labels={"region": draw(st.sampled_from(["eu", "eu", "us"]))},
        allocatable=amounts if draw(st.booleans()) else {},
        capacity=amounts,
    )


EVENTS = st.builds(Event, clusters(), st.integers(0, 4).map(lambda number: number == 0))

PRIORITIZERS = st.lists(
    st.fixed_dictionaries(
        {
            "scoreCoordinate": st.one_of(
                st.sampled_from(["Balance", "Steady", "ResourceAllocatableCPU", "ResourceAllocatableMemory"]).map(
                    lambda name: {"builtIn": name}
                ),
                st.just({"type": "AddOn", "addOn": {"resourceName": "demo", "scoreName": "free"}}),
            ),
            "weight": st.integers(-2, 3),
        }
    ),
    max_size=3,
)
TOLERATIONS = st.fixed_dictionaries(
    {"operator": st.just("Exists")},
    optional={
        "key": st.sampled_from("ab"),
        "effect": st.sampled_from(EFFECTS),
        "tolerationSeconds": st.sampled_from([0, 60, 120]),
    },
)


@st.composite
def placements(draw: st.DrawFn) -> Placement:
    spec: dict[str, Any] = {"tolerations": draw(st.lists(TOLERATIONS, max_size=2))}
    count = draw(st.one_of(st.none(), st.integers(0, 6)))
    if count is not None:
        spec["numberOfClusters"] = count
    if draw(st.booleans()):
        spec["prioritizerPolicy"] = {
            "mode": draw(st.sampled_from(["Additive", "Exact"])),
            "configurations": draw(PRIORITIZERS),
        }
    if draw(st.booleans()):
        selector = {"labelSelector": {"matchLabels": {"region": "eu"}}}
        spec["predicates"] = [{"requiredClusterSelector": selector}]
    if draw(st.integers(0, 4)) == 0:
        spec["sortBy"] = "Score"
    if draw(st.integers(0, 4)) == 0:
        spec["decisionStrategy"] = {"groupStrategy": {"clustersPerDecisionGroup": 2}}
    return placement(**spec)


LOADS = st.lists(st.frozensets(st.sampled_from(NAMES), max_size=6), max_size=6)


def carried(loads: Iterable[Iterable[str]]) -> list[PlacementDecision]:
    """What other placements have got."""
    return [decisions(*sorted(names), of=f"other{number}") for number, names in enumerate(loads)]


def outcome(result: PlacementResult | None) -> tuple[object, ...]:
    """Everything that is written, but for the messages."""
    assert result is not None
    conditions = {kind: (entry.status, entry.reason) for kind, entry in result.conditions.items()}
    return result.decisions, result.groups, conditions, result.requeue_at, result.warnings


def decided_anew(objects: Iterable[FleetObject], wanted: Placement, decided: PlacementResult, seconds: int) -> object:
    """What a fleet with these objects comes to if the placement had got that before."""
    fleet = Fleet(objects)
    fleet.ledger.assume(KEY, decided.decisions)
    return outcome(decide(fleet, read_policy(wanted), moment_of(at(seconds)), score_all=True)[1])


def check(
    members: list[ManagedCluster], wanted: Placement, loads: list[frozenset[str]], steps: list[tuple[Event, int]]
) -> None:
    """After each event, what the engine has is what deciding anew comes to."""
    addon = [scores(name, free=number * 9) for number, name in enumerate(NAMES)]
    others: list[FleetObject] = [*SETS, *carried(loads), *addon]
    engine = Engine()
    engine.load([*members, *others, wanted], NOW)
    present = {cluster.metadata.name: cluster for cluster in members}
    seconds = 0
    for event, pause in steps:
        seconds += pause
        engine.due(at(seconds))
        before = engine.result(KEY)
        assert before is not None
        # Only decisions that have come to rest can be compared: what was just selected is steady the next time.
        is_at_rest = decided_anew([*present.values(), *others], wanted, before, seconds) == outcome(before)
        engine.apply(event, at(seconds))
        assert isinstance(event.obj, ManagedCluster)
        if event.deleted:
            present.pop(event.obj.metadata.name, None)
        else:
            present[event.obj.metadata.name] = event.obj
        if is_at_rest:
            anew = decided_anew([*present.values(), *others], wanted, before, seconds)
            assert outcome(engine.result(KEY)) == anew


@settings(max_examples=400)
@given(
    st.lists(clusters(), max_size=8, unique_by=lambda cluster: cluster.metadata.name),
    placements(),
    LOADS,
    st.lists(st.tuples(EVENTS, st.sampled_from([0, 0, 0, 20, 70])), min_size=1, max_size=8),
)
def test_amending_equals_deciding_anew(
    members: list[ManagedCluster], wanted: Placement, loads: list[frozenset[str]], steps: list[tuple[Event, int]]
) -> None:
    check(members, wanted, loads, steps)


@st.composite
def sized(draw: st.DrawFn) -> ManagedCluster:
    """A cluster that is told from others by its processors; one in four has a taint that nobody tolerates."""
    amounts = {"cpu": str(draw(st.sampled_from([1, 10, 20, 21, 22, 40])))}
    marks = [taint("c:NoSelect")] if draw(st.integers(0, 3)) == 0 else []
    return managed(draw(st.sampled_from(NAMES)), *marks, allocatable=amounts, capacity=amounts)


@settings(max_examples=400)
@given(
    st.lists(sized(), min_size=4, max_size=8, unique_by=lambda cluster: cluster.metadata.name),
    st.integers(1, 3),
    st.integers(1, 2),
    LOADS,
    st.lists(st.builds(Event, sized(), st.booleans()), min_size=1, max_size=8),
)
def test_scores_between_extremes_are_amended(
    members: list[ManagedCluster], count: int, weight: int, loads: list[frozenset[str]], events: list[Event]
) -> None:
    # A cluster with the most or the least of a resource changes the scores of all, one in between nobody's but its own.
    prefer = {"scoreCoordinate": {"builtIn": "ResourceAllocatableCPU"}, "weight": weight}
    wanted = placement(numberOfClusters=count, prioritizerPolicy={"configurations": [prefer]})
    check(members, wanted, loads, [(event, 0) for event in events])
