"""The fleet: clusters, sets, bindings, add-on scores and decisions, indexed and kept up to date event by event.

    ManagedCluster ─────────┐
    ManagedClusterSet       │
    ManagedClusterSetBinding├─ Fleet.apply(event) ─→ what changed ─→ Engine
    AddOnPlacementScore     │
    PlacementDecision ──────┘

Nothing here decides; an event costs what it changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple, TypeAlias

from dray.api.cluster import (
    AddOnPlacementScore,
    ManagedCluster,
    ManagedClusterSet,
    ManagedClusterSetBinding,
    Placement,
    PlacementDecision,
)
from dray.api.references import ObjectName
from dray.placement.amounts import Amounts
from dray.placement.cluster_set import ClusterSet
from dray.placement.label_index import LabelIndex
from dray.placement.ledger import Ledger
from dray.placement.member import ClusterTaint, Member
from dray.placement.moments import Moment, moment_of

FleetObject: TypeAlias = (
    ManagedCluster | ManagedClusterSet | ManagedClusterSetBinding | AddOnPlacementScore | PlacementDecision | Placement
)


class Event(NamedTuple):
    """An object as it is now or, if `deleted`, as it last was."""

    obj: FleetObject
    deleted: bool = False


class MemberChange(NamedTuple):
    """A cluster is new, different or gone, and the sets that it belonged to before and belongs to now."""

    name: str
    old: Member | None
    new: Member | None
    old_sets: frozenset[str]
    new_sets: frozenset[str]


class SetChange(NamedTuple):
    """A cluster set is new, different or gone."""

    name: str


class BindingChange(NamedTuple):
    """A namespace has another cluster set, or one less."""

    namespace: str


class ScoreChange(NamedTuple):
    """An add-on has other scores for a cluster."""

    cluster: str
    resource: str


class DecisionChange(NamedTuple):
    """The API shows other decisions for these placements."""

    placements: tuple[ObjectName, ...]


FleetChange: TypeAlias = MemberChange | SetChange | BindingChange | ScoreChange | DecisionChange


class AddOnScores(NamedTuple):
    """What an add-on says about one cluster."""

    values: Mapping[str, int]
    valid_until: Moment | None

    def expired(self, now: Moment) -> bool:
        """Whether the scores no longer count."""
        return self.valid_until is not None and now > self.valid_until


class Fleet:
    """Everything that placements choose from."""

    def __init__(self, objects: Iterable[FleetObject] = ()) -> None:
        self.members: dict[str, Member] = {}
        self.labels = LabelIndex()
        self.claims = LabelIndex()
        self.amounts = Amounts()
        self.ledger = Ledger()
        self.tainted: dict[tuple[ClusterTaint, ...], set[str]] = {}
        """The clusters that have taints, by these: what is the same is judged once."""
        self._selectable: set[str] = set()
        self._sets: dict[str, ClusterSet] = {}
        self._sets_of: dict[str, frozenset[str]] = {}
        self._bound: dict[str, set[str]] = {}
        self._namespaces: dict[str, set[str]] = {}
        self._scores: dict[tuple[str, str], AddOnScores] = {}
        self._unions: dict[tuple[str, ...], frozenset[str]] = {}
        self.version = 0
        """Grows with every change that a decision may rest on, other than of decisions."""
        for obj in objects:
            self.apply(Event(obj))

    def apply(self, event: Event) -> FleetChange | None:
        """Take note of an event. None: nothing that a decision rests on has changed."""
        change = self._apply(event)
        if change is not None and not isinstance(change, DecisionChange):
            self.version += 1
        return change

    def _apply(self, event: Event) -> FleetChange | None:
        obj, deleted = event
        match obj:
            case ManagedCluster():
                return self._apply_cluster(obj, deleted)
            case ManagedClusterSet():
                return self._apply_set(obj, deleted)
            case ManagedClusterSetBinding():
                return self._apply_binding(obj, deleted)
            case AddOnPlacementScore():
                return self._apply_scores(obj, deleted)
            case PlacementDecision():
                return self._apply_decision(obj, deleted)
            case Placement():
                return None
        raise TypeError(f"not part of a fleet: {type(obj).__name__}")

    def bound_sets(self, namespace: str) -> tuple[str, ...]:
        """The sets that are bound to a namespace and exist, by name."""
        return tuple(sorted(name for name in self._bound.get(namespace, ()) if name in self._sets))

    def is_bound(self, set_name: str, namespace: str) -> bool:
        """Whether a set, existing or not, is bound to a namespace."""
        return set_name in self._bound.get(namespace, ())

    def namespaces_of(self, set_name: str) -> AbstractSet[str]:
        """The namespaces that a set, existing or not, is bound to."""
        return self._namespaces.get(set_name, frozenset())

    def set_named(self, name: str) -> ClusterSet:
        """An existing set."""
        return self._sets[name]

    def sets_of(self, cluster: str) -> frozenset[str]:
        """The sets that a cluster belongs to. A cluster that is being deleted belongs to none."""
        return self._sets_of.get(cluster, frozenset())

    def in_sets(self, names: tuple[str, ...]) -> frozenset[str]:
        """The clusters of any of these sets."""
        found = self._unions.get(names)
        if found is None:
            found = frozenset().union(*(self._sets[name].members for name in names))
            self._unions[names] = found
        return found

    def scores(self, cluster: str, resource: str) -> AddOnScores | None:
        """The scores that AddOnPlacementScore `resource` gives to a cluster."""
        return self._scores.get((cluster, resource))

    def _apply_cluster(self, cluster: ManagedCluster, deleted: bool) -> MemberChange | None:
        name = cluster.metadata.name
        old = self.members.get(name)
        new = None if deleted else Member.of(cluster)
        if old == new:
            return None
        old_sets = self.sets_of(name)
        if new is None:
            self._forget_member(name)
        else:
            self._put_member(new)
        return MemberChange(name, old, new, old_sets, self.sets_of(name))

    def _put_member(self, member: Member) -> None:
        name = member.name
        self._unmark(name)
        old = self.members.get(name)
        self.amounts.replace(name, old.allocatable if old is not None else {}, member.allocatable)
        self.members[name] = member
        self.ledger.enroll(name)
        if member.taints:
            self.tainted.setdefault(member.taints, set()).add(name)
        self.labels.put(name, member.labels)
        self.claims.put(name, member.claims)
        _include(self._selectable, name, not member.deleting)
        self._join_sets(name, None if member.deleting else member.labels)

    def _unmark(self, name: str) -> None:
        """Takes a cluster from among those with its taints."""
        old = self.members.get(name)
        if old is not None and old.taints:
            names = self.tainted[old.taints]
            names.remove(name)
            if not names:
                del self.tainted[old.taints]

    def _forget_member(self, name: str) -> None:
        self._unmark(name)
        self.amounts.replace(name, self.members.pop(name).allocatable, {})
        self.ledger.dismiss(name)
        self.labels.remove(name)
        self.claims.remove(name)
        self._selectable.discard(name)
        self._join_sets(name, None)

    def _join_sets(self, cluster: str, labels: Mapping[str, str] | None) -> None:
        """Put a cluster into the sets that its labels ask for, and into no others; None: into none."""
        joined = frozenset(
            name for name, entry in self._sets.items() if labels is not None and entry.selector.matches(labels)
        )
        before = self.sets_of(cluster)
        if joined == before:
            return
        for name in before - joined:
            self._sets[name].members.discard(cluster)
        for name in joined - before:
            self._sets[name].members.add(cluster)
        self._set_sets_of(cluster, joined)
        self._unions.clear()

    def _set_sets_of(self, cluster: str, sets: frozenset[str]) -> None:
        if sets:
            self._sets_of[cluster] = sets
        else:
            self._sets_of.pop(cluster, None)

    def _apply_set(self, obj: ManagedClusterSet, deleted: bool) -> SetChange | None:
        name = obj.metadata.name
        old = self._sets.get(name)
        new = None if deleted else ClusterSet.of(obj)
        if old == new:
            return None
        before: AbstractSet[str] = old.members if old else frozenset()
        if new is None:
            del self._sets[name]
        else:
            self._sets[name] = new
            new.members.update(self.labels.select(new.selector, self._selectable))
        after: AbstractSet[str] = new.members if new else frozenset()
        for cluster in before - after:
            self._set_sets_of(cluster, self.sets_of(cluster) - {name})
        for cluster in after - before:
            self._set_sets_of(cluster, self.sets_of(cluster) | {name})
        self._unions.clear()
        return SetChange(name)

    def _apply_binding(self, binding: ManagedClusterSetBinding, deleted: bool) -> BindingChange | None:
        # A binding has the name of its set; upstream's controller goes by the name.
        namespace, name = binding.metadata.namespace, binding.metadata.name
        if self.is_bound(name, namespace) is not deleted:
            return None
        _include(self._bound.setdefault(namespace, set()), name, not deleted)
        _include(self._namespaces.setdefault(name, set()), namespace, not deleted)
        return BindingChange(namespace)

    def _apply_scores(self, obj: AddOnPlacementScore, deleted: bool) -> ScoreChange | None:
        key = (obj.metadata.namespace, obj.metadata.name)
        new = None if deleted else _read_scores(obj)
        if self._scores.get(key) == new:
            return None
        if new is None:
            del self._scores[key]
        else:
            self._scores[key] = new
        return ScoreChange(*key)

    def _apply_decision(self, decision: PlacementDecision, deleted: bool) -> DecisionChange | None:
        metadata = decision.metadata
        before = self.ledger.owner(metadata.namespace, metadata.name)
        if deleted:
            self.ledger.forget_object(metadata.namespace, metadata.name)
            after = before
        else:
            after = self.ledger.observe(decision)
        owners = tuple(key for key in dict.fromkeys((before, after)) if key is not None)
        return DecisionChange(owners) if owners else None


def _read_scores(obj: AddOnPlacementScore) -> AddOnScores:
    until = obj.status.valid_until
    return AddOnScores(
        {item.name: item.value for item in obj.status.scores}, moment_of(until) if until is not None else None
    )


def _include(names: set[str], name: str, wanted: bool) -> None:
    if wanted:
        names.add(name)
    else:
        names.discard(name)
