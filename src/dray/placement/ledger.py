"""Who has been decided for: the clusters of every placement, and how many placements each cluster carries."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from dray.api.cluster import PlacementDecision
from dray.api.cluster.placement_decision import (
    DECISION_GROUP_INDEX_LABEL,
    DECISION_GROUP_NAME_LABEL,
    PLACEMENT_LABEL,
)
from dray.api.references import ObjectName


class Observed(NamedTuple):
    """One PlacementDecision as it stands in the API."""

    placement: ObjectName
    group_index: str
    group_name: str
    clusters: tuple[str, ...]


_NOBODY: frozenset[str] = frozenset()
MANY: Final = 64
"""Changes at once, from which on it is cheaper to put clusters in order again than to keep them so."""


class Ledger:
    """The decisions in force.

    They are read from PlacementDecisions (`observe`) until someone decides anew (`assume`); from then on the
    assumed decisions count, whatever the API still shows.
    """

    def __init__(self) -> None:
        self._observed: dict[ObjectName, dict[str, Observed]] = {}
        self._by_object: dict[tuple[str, str], ObjectName] = {}
        self._assumed: set[ObjectName] = set()
        self._in_force: dict[ObjectName, set[str]] = {}
        self.loads: Counter[str] = Counter()
        """Cluster → number of placements that selected it."""
        self.by_load: dict[int, set[str]] = {}
        """Number of placements → the clusters that so many selected. Nobody's clusters are there if they exist."""
        self._orders: dict[int, list[str]] = {}
        """Number of placements → the same clusters by name, for numbers that somebody asked about."""
        self._highest = 0
        self._existing: set[str] = set()

    def enroll(self, cluster: str) -> None:
        """A cluster exists, decided for or not."""
        if cluster not in self._existing:
            self._existing.add(cluster)
            if cluster not in self.loads:
                self._enter(0, cluster)

    def dismiss(self, cluster: str) -> None:
        """A cluster is gone; it still counts where it is decided for."""
        self._existing.discard(cluster)
        if cluster not in self.loads:
            self._leave(0, cluster)

    def decided(self, placement: ObjectName) -> AbstractSet[str]:
        """The clusters in a placement's decisions: a view, good until the next change."""
        return self._in_force.get(placement, _NOBODY)

    def observed_clusters(self, placement: ObjectName) -> frozenset[str]:
        """The clusters that the API shows for a placement."""
        entries = self._observed.get(placement, {}).values()
        return _NOBODY.union(*(entry.clusters for entry in entries))

    def observed_objects(self, placement: ObjectName) -> list[tuple[str, Observed]]:
        """A placement's PlacementDecisions by name, in the order of their groups."""
        return sorted(self._observed.get(placement, {}).items(), key=lambda item: _object_order(*item))

    def owner(self, namespace: str, name: str) -> ObjectName | None:
        """Whose PlacementDecision this is, as far as seen."""
        return self._by_object.get((namespace, name))

    def observe(self, decision: PlacementDecision) -> ObjectName:
        """Take note of a new or changed PlacementDecision; tells whose it is."""
        metadata = decision.metadata
        placement = ObjectName(metadata.namespace, metadata.labels.get(PLACEMENT_LABEL, ""))
        if self.owner(metadata.namespace, metadata.name) != placement:
            self.forget_object(metadata.namespace, metadata.name)
        self._by_object[metadata.namespace, metadata.name] = placement
        self._observed.setdefault(placement, {})[metadata.name] = Observed(
            placement,
            metadata.labels.get(DECISION_GROUP_INDEX_LABEL, ""),
            metadata.labels.get(DECISION_GROUP_NAME_LABEL, ""),
            tuple(entry.cluster_name for entry in decision.status.decisions if entry.cluster_name),
        )
        self._refresh(placement)
        return placement

    def forget_object(self, namespace: str, name: str) -> None:
        """A PlacementDecision is gone."""
        placement = self._by_object.pop((namespace, name), None)
        if placement is not None:
            del self._observed[placement][name]
            self._refresh(placement)

    def assume(self, placement: ObjectName, clusters: Iterable[str]) -> None:
        """A placement has been decided."""
        self._assumed.add(placement)
        self._set(placement, set(clusters))

    def assume_one(self, placement: ObjectName, cluster: str, selected: bool) -> None:
        """A decided placement has got or lost one cluster."""
        in_force = self._in_force.setdefault(placement, set())
        if selected and cluster not in in_force:
            in_force.add(cluster)
            self._load(cluster, +1)
        elif not selected and cluster in in_force:
            in_force.remove(cluster)
            self._load(cluster, -1)

    def release(self, placement: ObjectName) -> None:
        """Nobody speaks for a placement any more; what the API shows counts again."""
        self._assumed.discard(placement)
        self._refresh(placement)

    def highest_load_without(self, placement: ObjectName) -> int:
        """The highest load of any cluster if the placement's own decisions did not count."""
        if not self._highest:
            return 0
        busiest, own = self.by_load[self._highest], self.decided(placement)
        # Looking at its own clusters is only worth it if they can be all of the busiest ones.
        return self._highest - 1 if len(busiest) <= len(own) and busiest <= own else self._highest

    def in_order(self, load: int) -> Sequence[str]:
        """The clusters that so many placements selected, by name: a view, good until the next change."""
        found = self._orders.get(load)
        if found is None:
            found = self._orders[load] = sorted(self.by_load.get(load, ()))
        return found

    def _refresh(self, placement: ObjectName) -> None:
        """The API shows something else."""
        if placement not in self._assumed:
            self._set(placement, set(self.observed_clusters(placement)))

    def _set(self, placement: ObjectName, after: set[str]) -> None:
        before: AbstractSet[str] = self._in_force.pop(placement, _NOBODY)
        if after:
            self._in_force[placement] = after
        gone, come = before - after, after - before
        if len(gone) + len(come) > MANY:
            self._orders.clear()
        for name in gone:
            self._load(name, -1)
        for name in come:
            self._load(name, +1)

    def _load(self, name: str, change: int) -> None:
        old = self.loads[name]
        new = old + change
        if old or name in self._existing:
            self._leave(old, name)
        if new or name in self._existing:
            self._enter(new, name)
        if new:
            self.loads[name] = new
            self._highest = max(self._highest, new)
        else:
            del self.loads[name]

    def _enter(self, load: int, name: str) -> None:
        self.by_load.setdefault(load, set()).add(name)
        if (order := self._orders.get(load)) is not None:
            insort(order, name)

    def _leave(self, load: int, name: str) -> None:
        """A cluster has another load now: one more or, if it was the only one with the highest, one less."""
        names = self.by_load[load]
        names.remove(name)
        if (order := self._orders.get(load)) is not None:
            del order[bisect_left(order, name)]
        if not names:
            del self.by_load[load]
            if load == self._highest:
                self._highest = max(load - 1, 0)


def _object_order(name: str, entry: Observed) -> tuple[int, int, str]:
    index = entry.group_index
    _, _, number = name.rpartition("-")
    return (int(index) if index.isdecimal() else 0, int(number) if number.isdecimal() else 0, name)
