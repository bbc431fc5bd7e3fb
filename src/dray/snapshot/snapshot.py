"""The snapshot: immutable, cheap to change, asks its world."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final, TypeVar

from dray.allocator import Allocated, BudgetExceeded, Explanation, Failed, Options, allocate, explain
from dray.allocator import Outcome as Answer
from dray.allocator.pools import reaches
from dray.api import codec, registry
from dray.api.cluster import (
    AddOnPlacementScore,
    ManagedCluster,
    ManagedClusterSet,
    ManagedClusterSetBinding,
    Placement,
    PlacementDecision,
)
from dray.api.generated.core import Node
from dray.api.kinds import CLAIMS, NODES, PLACEMENTS, RULES, SLICES
from dray.api.meta import Object
from dray.api.references import ObjectKey, full_name
from dray.api.registry import Kind
from dray.api.resource import DeviceClass, ResourceClaim
from dray.api.times import Time
from dray.placement import Fleet, PlacementResult, place
from dray.prose.remedies import Trials
from dray.prose.wording import there_is
from dray.scheduling.claims import is_in_reach
from dray.scheduling.device_states import DeviceState, DeviceStates, in_reach, problem_of
from dray.scheduling.rehearsal import Rehearsal
from dray.snapshot.explanation import ClaimExplanation
from dray.snapshot.files import Source
from dray.snapshot.objects import DEFAULT_NAMESPACE, Ignored, current_time, inherit, key_of, load_objects, typed
from dray.snapshot.outcome import Outcome
from dray.snapshot.world import Changes, World
from dray.tracker import EffectiveDevice, PoolView, Problem, Tracker

MAX_CLOSED_TRIED: Final = 8
"""So many nodes that take no pods are asked whether they have devices for claims that fit on no other."""
T = TypeVar("T", bound=Object)

_OF_FLEETS = (ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, PlacementDecision, AddOnPlacementScore)


class SnapshotError(LookupError):
    """The snapshot has no such object; the message names it and says what there is."""


class Snapshot:
    """A cluster at one moment. Never changes; `with_objects` and `without` give changed copies cheaply."""

    def __init__(self, world: World, changes: Changes, ignored: tuple[Ignored, ...] = ()) -> None:
        self._world = world
        self._changes = changes
        self._base: Changes | None = None
        self._touched: tuple[ObjectKey, ...] = ()
        self.ignored = ignored
        """What was passed over on loading, because dray does not know its kind."""

    def with_objects(self, *objects: Any) -> Snapshot:
        """A snapshot in which these objects (dicts or typed) exist, in place of any at the same place."""
        now = current_time()
        return self._changed(dict(typed(obj, now) for obj in objects))

    def with_typed(self, objects: Iterable[Object]) -> Snapshot:
        """The same for objects in hub shape with all defaults, which are taken as they are."""
        return self._changed({key_of(obj, registry.by_kind(obj.api_version, obj.kind)): obj for obj in objects})

    def without(self, *refs: str) -> Snapshot:
        """A snapshot without some objects, each named as `kind/name` or `kind/namespace/name` (plural or singular)."""
        return self._changed({self._existing(ref): None for ref in refs})

    def with_applied(self, *sources: Source, now: datetime | None = None) -> Snapshot:
        """A snapshot as `kubectl apply` of files, directories, "-" or dicts would leave it at a time.

        Objects that are there keep what a manifest does not say: their status, and when they were created. Raises
        InputError.
        """
        loaded = load_objects(sources, Time.of(now) if now is not None else current_time())
        made = {ref: inherit(obj, self.get(*ref)) for ref, obj in loaded.objects.items()}
        return self._changed(made, loaded.ignored)

    def with_allocations(self, outcome: Outcome) -> Snapshot:
        """A snapshot in which the claims of an outcome hold what they were given."""
        claims = []
        for name, allocation in outcome.allocations.items():
            claim = codec.to_builtins(self.claim(name))
            claims.append({**claim, "status": {**claim.get("status", {}), "allocation": allocation}})
        return self.with_objects(*claims)

    def differing(self, other: Snapshot) -> dict[ObjectKey, tuple[Object | None, Object | None]]:
        """What is different in another snapshot: the object here and the one there, None where there is none."""
        refs: Iterable[ObjectKey] = {**self._changes, **other._changes}
        if self._world is not other._world:
            refs = {**self._world.root, **other._world.root, **self._changes, **other._changes}
        pairs = {ref: (self.get(*ref), other.get(*ref)) for ref in refs}
        return {ref: (here, there) for ref, (here, there) in pairs.items() if here is not there and here != there}

    def get(self, resource: str, namespace: str, name: str) -> Object | None:
        """An object by resource (`resourceclaims.resource.k8s.io`), namespace and name."""
        ref = ObjectKey(resource, namespace, name)
        return self._changes[ref] if ref in self._changes else self._world.root.get(ref)

    def objects(self, kind: type[T]) -> Iterator[T]:
        """All objects of a type."""
        for ref, obj in self._world.root.items():
            if isinstance(obj, kind) and ref not in self._changes:
                yield obj
        for changed in self._changes.values():
            if isinstance(changed, kind):
                yield changed

    def devices(self, node: str | None = None) -> Iterator[EffectiveDevice]:
        """Every device as the scheduler sees it: patches merged in, with all taints; those in reach of a node."""
        self._move()
        # A list, because the world may move to another snapshot while this one is looked at.
        devices = list(self._world.cluster.tracker.devices())
        if node is not None:
            labels = self._labels(node)
            devices = [device for device in devices if reaches(device.access, node, labels)]
        return iter(devices)

    def pools(self) -> Iterator[PoolView]:
        """Every pool, also those that cannot be allocated from; of a pool in parts, each part."""
        self._move()
        return iter([part for view in self._world.cluster.tracker.pools.values() for part in view.each()])

    def problems(self) -> list[Problem]:
        """Selectors of patches and rules that fail on devices."""
        self._move()
        return self._world.cluster.tracker.problems

    def holders(self, device: EffectiveDevice) -> tuple[str, ...]:
        """The claims that hold a device."""
        self._move()
        holding = self._world.cluster.inventory.holding(device.id)
        return () if holding is None else tuple(dict.fromkeys((*holding.holders, *holding.shares)))

    def device_states(self, node: str | None = None) -> Iterator[DeviceState]:
        """What every device is good for now: free, held, tainted, blocked; those in reach of a node."""
        self._move()
        states = DeviceStates().devices(self._world.cluster)
        return iter(list(states if node is None else in_reach(states, node, self._world.cluster)))

    def tracker(self) -> Tracker:
        """The devices of this snapshot, to be read; it moves on when another snapshot of the family is asked."""
        self._move()
        return self._world.cluster.tracker

    def nodes(self) -> list[str]:
        """The names of all nodes, in the order in which they are tried."""
        self._move()
        return [node.name for node in self._world.cluster.inventory.nodes]

    def claim(self, name: str) -> ResourceClaim:
        """A claim by `namespace/name`. Raises SnapshotError, which says what there is."""
        found: ResourceClaim = find(self, CLAIMS, name)
        return found

    def pending(self) -> list[str]:
        """The claims without devices, as `namespace/name`, in the order in which they were loaded."""
        return [
            full_name(claim)
            for claim in self.objects(ResourceClaim)
            if claim.status.allocation is None and claim.metadata.deletion_timestamp is None
        ]

    def classes(self) -> dict[str, DeviceClass]:
        """All device classes by name."""
        self._move()
        return dict(self._world.cluster.classes)

    def selected_devices(self, rule: str) -> tuple[EffectiveDevice, ...]:
        """The devices that a DeviceTaintRule selects, whatever its effect; none if there is no such rule."""
        self._move()
        return self._world.cluster.tracker.selected(rule)

    def allocate(self, *claims: str, node: str | None = None, options: Options | None = None) -> Outcome:
        """Devices for claims (`namespace/name`), together and atomically, on `node` or the first node that fits.

        Claims that are allocated already keep what they have, and only nodes on which that can be used count.
        Raises SnapshotError if a claim is not there.
        """
        found = [self.claim(name) for name in claims]
        self._move()
        pending = [claim for claim in found if claim.status.allocation is None]
        held = [claim for claim in found if claim.status.allocation is not None]
        answer = self._answer(pending, held, node, options or Options())
        return self._outcome(answer, pending, held, node)

    def explain(self, *claims: str, nodes: list[str] | None = None) -> ClaimExplanation:
        """Why claims fit or do not fit, node by node and device by device. Raises SnapshotError."""
        found = [self.claim(name) for name in claims]
        return self._explain([claim for claim in found if claim.status.allocation is None], nodes)

    @contextmanager
    def rehearsal(self, options: Options | None = None) -> Iterator[Rehearsal]:
        """The scheduler, at work on this cluster in memory. Afterwards everything is as it was.

        Meanwhile no other snapshot of the family can be asked for devices: they share their machinery.
        """
        self._move()
        with self._world.lend() as cluster:
            rehearsal = Rehearsal(cluster, options)
            try:
                yield rehearsal
            finally:
                rehearsal.go_back(0)

    def place(self, placement: str, now: str | datetime | None = None) -> Placed:
        """Clusters for a Placement (`namespace/name`) at a time (RFC 3339 or datetime). Raises SnapshotError."""
        found: Placement = find(self, PLACEMENTS, placement)
        moment = now if isinstance(now, datetime) else Time.parse(now or current_time()).datetime()
        members = [obj for obj in self.objects(Object) if isinstance(obj, _OF_FLEETS)]
        return Placed(place(Fleet(members), found, moment))

    def _move(self) -> None:
        self._world.move_to(self._changes, self._base, self._touched)

    def _changed(self, made: Changes, ignored: tuple[Ignored, ...] = ()) -> Snapshot:
        changed = Snapshot(self._world, {**self._changes, **made}, (*self.ignored, *ignored))
        changed._base, changed._touched = self._changes, tuple(made)
        return changed

    def _labels(self, node: str) -> dict[str, str]:
        found = self.get(NODES.resource, "", node)
        return found.metadata.labels if isinstance(found, Node) else {}

    def _existing(self, text: str) -> ObjectKey:
        meant = named(text)
        for _, place_ in meant:
            if self.get(*place_) is not None:
                return place_
        kind, place_ = meant[0]
        full = f"{place_.namespace}/{place_.name}" if kind.namespaced else place_.name
        raise SnapshotError(f"no {kind.kind} {full}; {there_is(map(full_name, self.objects(kind.hub)))}")

    def _answer(
        self, pending: list[ResourceClaim], held: list[ResourceClaim], node: str | None, options: Options
    ) -> Answer | str:
        """The allocator's answer; a text if claims that are held already cannot be used on the node."""
        cluster = self._world.cluster
        closed = self._closed_nodes()
        if node in closed:
            return f"node {node} is {closed[node]}"
        if not held and pending and not closed:
            return allocate(cluster.inventory, cluster.classes, pending, node, options)
        if node is not None and cluster.inventory.nodes.get(node) is None:
            return Failed(f"node {node} not found", node)
        opened = [node] if node else [name for name in self.nodes() if name not in closed]
        usable = [name for name in opened if self._usable(held, name)]
        if held and not usable:
            return f"claims that are allocated already cannot be used on {node or 'any node'}"
        if not pending:
            return Allocated(usable[0], {})
        suits = set(usable).__contains__
        return allocate(cluster.inventory, cluster.classes, pending, node, options, suits=suits)

    def _closed_nodes(self) -> dict[str, str]:
        """Nodes that take no new pods, and so give no devices to claims: not ready, or cordoned."""
        self._move()
        problems = ((info.name, problem_of(info.node)) for info in self._world.cluster.nodes)
        return {name: problem.value for name, problem in problems if problem is not None}

    def _usable(self, held: list[ResourceClaim], name: str) -> bool:
        labels = self._labels(name)
        return all(is_in_reach(claim, name, labels) for claim in held)

    def _outcome(
        self, answer: Answer | str, pending: list[ResourceClaim], held: list[ResourceClaim], node: str | None
    ) -> Outcome:
        def explain_later() -> ClaimExplanation:
            return self._explain(pending, [node] if node else None)

        if isinstance(answer, str):
            return Outcome("unsatisfiable", explain_later, message=answer)
        if isinstance(answer, Failed):
            return Outcome("error", explain_later, error=answer.error, message=answer.error)
        if isinstance(answer, BudgetExceeded):
            return Outcome("error", explain_later, error=answer.message, message=answer.message)
        if not isinstance(answer, Allocated):
            return Outcome("unsatisfiable", explain_later, message=answer.message)
        allocations = {key: codec.to_builtins(result) for key, result in answer.allocations.items()}
        for claim in held:
            allocations[full_name(claim)] = codec.to_builtins(claim.status.allocation)
        return Outcome("allocated", explain_later, node=answer.node, allocations=allocations)

    def _explain(self, claims: list[ResourceClaim], nodes: list[str] | None) -> ClaimExplanation:
        self._move()
        if not claims:
            return ClaimExplanation(Explanation())
        closed = self._closed_nodes()
        asked = self.nodes() if nodes is None else nodes
        opened = [name for name in asked if name not in closed] if closed else nodes
        report = explain(self._world.cluster.inventory, self._world.cluster.classes, claims, opened)
        passed_over = {name: closed[name] for name in asked if name in closed}
        is_pending = not report.error and not any(node.status == "allocated" for node in report.nodes)
        tried = list(passed_over)[:MAX_CLOSED_TRIED] if is_pending else []
        fitting = tuple(name for name in tried if self._fits(claims, name))
        return ClaimExplanation(report, _advice_of(self), passed_over, fitting)

    def _fits(self, claims: list[ResourceClaim], node: str) -> bool:
        """Whether a node has the devices, whatever else is to be said of it."""
        cluster = self._world.cluster
        return isinstance(allocate(cluster.inventory, cluster.classes, claims, node, Options()), Allocated)


class Placed:
    """The answer to `place`."""

    def __init__(self, result: PlacementResult) -> None:
        self.result = result
        self.decisions = list(result.decisions)
        self.conditions = {name: condition.to_dict() for name, condition in result.conditions.items()}
        self.requeue_after = result.requeue_after

    def explain(self) -> Any:
        """Why each other cluster was not chosen."""
        return self.result.explanation


def load(*sources: Source) -> Snapshot:
    """A snapshot of files, directories, "-" (standard input) or dicts; YAML or JSON, several documents, lists.

    Raises InputError with the file and line of what cannot be read.
    """
    loaded = load_objects(sources, current_time())
    return Snapshot(World(loaded.objects), {}, loaded.ignored)


def from_objects(
    objects: Iterable[Object], *, has_all_nodes: bool | None = None, has_all_volumes: bool | None = None
) -> Snapshot:
    """A snapshot of typed objects in hub shape, as clients hand them out. Nothing is copied or defaulted.

    If it `has_all_nodes`, one that only slices mention is gone; otherwise it counts as there. If it `has_all_volumes`,
    a pod whose volume is not among them waits; otherwise nobody knows. If nobody says so, it has all if it has any.
    """
    placed = {key_of(obj, registry.by_kind(obj.api_version, obj.kind)): obj for obj in objects}
    return Snapshot(World(placed, has_all_nodes=has_all_nodes, has_all_volumes=has_all_volumes), {})


def _advice_of(snapshot: Snapshot) -> Trials:
    from dray.snapshot.advice import Advice  # which asks snapshots

    return Advice(snapshot)


def named(text: str) -> list[tuple[Kind, ObjectKey]]:
    """What `kind/name` or `kind/namespace/name` may mean: one for each kind of that name. Raises SnapshotError."""
    kind_name, _, rest = text.partition("/")
    namespace, name = _split(rest) if "/" in rest else ("", rest)
    known = kinds_called(kind_name)
    if not known or not name:
        what = "names no object" if known else "is of no known kind"
        raise SnapshotError(f"{text!r} {what}; give kind/name or kind/namespace/name")
    return [
        (kind, ObjectKey(kind.resource, (namespace or DEFAULT_NAMESPACE) if kind.namespaced else "", name))
        for kind in known
    ]


def kinds_called(word: str) -> list[Kind]:
    """The kinds of a name as people type it: `node`, `nodes`, `no`, `pods`, `rule`."""
    return [kind for kind in registry.kinds() if _is_called(kind, word.lower())]


_SPOKEN: Final = {"claim": CLAIMS.resource, "rule": RULES.resource, "slice": SLICES.resource}
"""What commands call kinds, and Kubernetes does not."""


def _is_called(kind: registry.Kind, name: str) -> bool:
    names = (kind.kind.lower(), kind.plural, kind.resource, *kind.short_names)
    return name in names or _SPOKEN.get(name.removesuffix("s")) == kind.resource


def find(snapshot: Snapshot, kind: registry.Kind, name: str) -> Any:
    """The object of a kind by `namespace/name`. Raises SnapshotError, which says what there is."""
    namespace, short = _split(name)
    found = snapshot.get(kind.resource, namespace, short)
    if found is not None:
        return found
    known = there_is(map(full_name, snapshot.objects(kind.hub)))
    raise SnapshotError(f"no {kind.kind} {namespace}/{short}; {known}")


def _split(name: str) -> tuple[str, str]:
    """`ns/claim` → ("ns", "claim"); without a namespace it is `default`."""
    namespace, slash, short = name.partition("/")
    return (namespace, short) if slash else (DEFAULT_NAMESPACE, name)
