"""Whatever happens to a fleet, in whatever order: decisions obey the rules, and only events change them.

The rules are written down a second time here, cluster by cluster and without any index.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from dray.api.cluster import ManagedCluster, Placement, Taint, Toleration
from dray.api.cluster.cluster_set import CLUSTER_SET_LABEL
from dray.api.references import ObjectName
from dray.placement import Engine, Event, Fleet, FleetObject, PlacementResult, place
from dray.placement.decide import decide
from dray.placement.moments import moment_of
from dray.placement.policy import read_policy
from placement_fleet import NOW, at, binding, cluster_set, managed, placement, taint

SETS = ("set1", "set2")
NAMES = tuple(f"cluster{number}" for number in range(6))
LASTING = ("NoSelect", "PreferNoSelect")
EFFECTS = (*LASTING, "NoSelectIfNew")


def taints(effects: tuple[str, ...]) -> st.SearchStrategy[Taint]:
    texts = st.builds(lambda key, effect: f"{key}:{effect}", st.sampled_from("ab"), st.sampled_from(effects))
    return st.builds(taint, texts, st.sampled_from([0, 30, 200]))


def clusters(effects: tuple[str, ...]) -> st.SearchStrategy[ManagedCluster]:
    def build(name: str, in_set: str | None, region: str, cpu: int, marks: list[Taint]) -> ManagedCluster:
        amounts = {"cpu": str(cpu)}
        return managed(name, *marks, in_set=in_set, labels={"region": region}, allocatable=amounts, capacity=amounts)

    return st.builds(
        build,
        st.sampled_from(NAMES),
        st.sampled_from([*SETS, None]),
        st.sampled_from(["eu", "us"]),
        st.integers(1, 4),
        st.lists(taints(effects), max_size=2),
    )


TOLERATIONS = st.fixed_dictionaries(
    {"operator": st.just("Exists")},
    optional={
        "key": st.sampled_from("ab"),
        "effect": st.sampled_from(EFFECTS),
        "tolerationSeconds": st.sampled_from([0, 60, 120]),
    },
)
PREDICATES = st.sampled_from(["eu", "us"]).map(
    lambda region: {"requiredClusterSelector": {"labelSelector": {"matchLabels": {"region": region}}}}
)
CPU = {"configurations": [{"scoreCoordinate": {"builtIn": "ResourceAllocatableCPU"}}]}


def placements(counts: st.SearchStrategy[int | None]) -> st.SearchStrategy[Placement]:
    def build(number: int, count: int | None, spec: dict[str, Any]) -> Placement:
        number_wanted: dict[str, Any] = {} if count is None else {"numberOfClusters": count}
        return placement(f"p{number}", **spec, **number_wanted)

    spec = st.fixed_dictionaries(
        {"tolerations": st.lists(TOLERATIONS, max_size=2)},
        optional={
            "clusterSets": st.lists(st.sampled_from(SETS), unique=True, max_size=2),
            "predicates": st.lists(PREDICATES, max_size=2),
            "prioritizerPolicy": st.just(CPU),
            "decisionStrategy": st.just({"groupStrategy": {"clustersPerDecisionGroup": 2}}),
        },
    )
    return st.builds(build, st.integers(0, 2), counts, spec)


def events(effects: tuple[str, ...], counts: st.SearchStrategy[int | None]) -> st.SearchStrategy[Event]:
    def event(obj: FleetObject, deleted: bool) -> Event:
        return Event(obj, deleted)

    seldom = st.integers(0, 4).map(lambda number: number == 0)
    objects = st.one_of(
        clusters(effects),
        clusters(effects),
        placements(counts),
        st.sampled_from(SETS).map(cluster_set),
        st.sampled_from(SETS).map(binding),
    )
    return st.builds(event, objects, seldom)


COUNTS = st.one_of(st.none(), st.integers(0, 4))


@dataclass
class World:
    """The objects that exist after some events."""

    clusters: dict[str, ManagedCluster]
    placements: dict[ObjectName, Placement]
    others: dict[tuple[str, str], FleetObject]

    @staticmethod
    def start() -> World:
        made = World({}, {}, {})
        for name in SETS:
            made.see(Event(cluster_set(name)))
            made.see(Event(binding(name)))
        return made

    def see(self, event: Event) -> None:
        obj = event.obj
        name = obj.metadata.name
        store: dict[Any, Any] = self.others
        key: Any = (type(obj).__name__, name)
        if isinstance(obj, ManagedCluster):
            store, key = self.clusters, name
        elif isinstance(obj, Placement):
            store, key = self.placements, ObjectName("ns1", name)
        if event.deleted:
            store.pop(key, None)
        else:
            store[key] = obj

    def has(self, kind: str, name: str) -> bool:
        return (kind, name) in self.others

    def objects(self) -> list[FleetObject]:
        return [*self.clusters.values(), *self.others.values()]


def tolerated(mark: Taint, tolerations: tuple[Toleration, ...], now: dt.datetime) -> bool:
    for toleration in tolerations:
        if toleration.key not in ("", mark.key) or toleration.effect not in ("", mark.effect):
            continue
        if toleration.toleration_seconds is None or mark.effect == "NoSelectIfNew":
            return True
        assert mark.time_added is not None
        if now < mark.time_added.datetime() + dt.timedelta(seconds=toleration.toleration_seconds):
            return True
    return False


def may_have(world: World, wanted: Placement, cluster: ManagedCluster, decided: bool, now: dt.datetime) -> bool:
    """Whether a placement may select a cluster, by the book."""
    of_set = cluster.metadata.labels.get(CLUSTER_SET_LABEL, "")
    if not (world.has("ManagedClusterSet", of_set) and world.has("ManagedClusterSetBinding", of_set)):
        return False
    spec = wanted.spec
    if spec.cluster_sets and of_set not in spec.cluster_sets:
        return False
    regions = [entry.required_cluster_selector.label_selector.match_labels["region"] for entry in spec.predicates]
    if regions and cluster.metadata.labels["region"] not in regions:
        return False
    return all(
        mark.effect == "PreferNoSelect"
        or (mark.effect == "NoSelectIfNew" and decided)
        or tolerated(mark, spec.tolerations, now)
        for mark in cluster.spec.taints
    )


def check(world: World, wanted: Placement, result: PlacementResult, now: dt.datetime) -> None:
    """Decisions are allowed, and as many as can be had. They have been decided by now, so nothing is new."""
    chosen = set(result.decisions)
    assert len(chosen) == len(result.decisions)
    allowed = {
        name for name, cluster in world.clusters.items() if may_have(world, wanted, cluster, name in chosen, now)
    }
    assert chosen <= allowed
    count = wanted.spec.number_of_clusters
    assert len(chosen) == (len(allowed) if count is None else min(count, len(allowed)))
    short = not chosen or (count is not None and len(chosen) < count)
    assert (result.conditions["PlacementSatisfied"].status == "False") is short


def outcome(result: PlacementResult) -> tuple[object, ...]:
    """Everything but the messages, which may name a taint that by now is not the only one any more."""
    conditions = {kind: (entry.status, entry.reason) for kind, entry in result.conditions.items()}
    return result.decisions, result.groups, conditions, result.warnings


def at_rest(engine: Engine, world: World, now: dt.datetime) -> None:
    """What the engine keeps up to date is what it would find anew."""
    assert engine.due(now) == {}
    for key, wanted in world.placements.items():
        result = engine.result(key)
        assert result is not None
        check(world, wanted, result, now)
        _, anew = decide(engine.fleet, read_policy(wanted), moment_of(now))
        assert result.requeue_at == anew.requeue_at
        if wanted.spec.number_of_clusters is None:
            assert outcome(result) == outcome(anew)
        repeated = replace(wanted, metadata=replace(wanted.metadata, resource_version="2"))
        assert engine.apply(Event(repeated), now) == {}
    for cluster in world.clusters.values():
        assert engine.apply(Event(cluster), now) == {}


@settings(max_examples=150)
@given(
    st.lists(clusters(EFFECTS), max_size=5),
    st.lists(placements(COUNTS), min_size=1, max_size=3),
    st.lists(st.tuples(events(EFFECTS, COUNTS), st.sampled_from([0, 0, 20, 70])), min_size=1, max_size=12),
)
def test_decisions_obey_the_rules_after_every_event(
    members: list[ManagedCluster], wanted_first: list[Placement], steps: list[tuple[Event, int]]
) -> None:
    engine, world = Engine(), World.start()
    seconds = 0
    world.clusters.update((cluster.metadata.name, cluster) for cluster in members)
    world.placements.update((ObjectName("ns1", wanted.metadata.name), wanted) for wanted in wanted_first)
    engine.load([*world.objects(), *world.placements.values()], NOW)
    for event, pause in steps:
        seconds += pause
        engine.due(at(seconds))
        engine.apply(event, at(seconds))
        world.see(event)
        for key, wanted in world.placements.items():
            result = engine.result(key)
            assert result is not None
            check(world, wanted, result, at(seconds))
    at_rest(engine, world, at(seconds))


@settings(max_examples=100)
@given(
    st.lists(clusters(LASTING), unique_by=lambda cluster: cluster.metadata.name),
    st.lists(placements(st.none()), unique_by=lambda wanted: wanted.metadata.name),
    st.randoms(use_true_random=False),
)
def test_placements_that_take_all_converge_from_any_order_of_events(
    members: list[ManagedCluster], wanted: list[Placement], shuffler: Any
) -> None:
    sets: list[FleetObject] = [*map(cluster_set, SETS), *map(binding, SETS)]
    objects: list[FleetObject] = [*sets, *members, *wanted]
    shuffler.shuffle(objects)
    engine = Engine()
    for obj in objects:
        engine.apply(Event(obj), NOW)
    for entry in wanted:
        scratch = place(Fleet([*sets, *members]), entry, NOW)
        result = engine.result(ObjectName("ns1", entry.metadata.name))
        assert result is not None
        assert result.decisions == scratch.decisions
        assert result.groups == scratch.groups
        assert result.requeue_at == scratch.requeue_at


@settings(max_examples=100)
@given(st.lists(clusters(EFFECTS), unique_by=lambda cluster: cluster.metadata.name), placements(COUNTS))
def test_deciding_twice_changes_nothing(members: list[ManagedCluster], wanted: Placement) -> None:
    fleet = Fleet([*map(cluster_set, SETS), *map(binding, SETS), *members])
    first = place(fleet, wanted, NOW)
    fleet.ledger.assume(first.placement, first.decisions)
    assert place(fleet, wanted, NOW).decisions == first.decisions
