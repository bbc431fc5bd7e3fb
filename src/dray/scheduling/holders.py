"""Placed pods by what they say about others: whom they keep away, whom they attract.

    Holders    numbers by term and domain: what a pod that comes or goes changes
    Regard     the same for one sort of pods, by key: what a decision asks for, made when it first does, then caught up

Many terms may mean a pod, and it may be asked about every node: so what they say together is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from dray.allocator.change_log import ChangeLog
from dray.scheduling.node_info import NodeInfo
from dray.scheduling.pod_info import PodInfo
from dray.scheduling.pod_terms import Labels, Term
from dray.scheduling.selection_index import SelectionIndex

ByKey: TypeAlias = dict[str, dict[str, int]]
"""Numbers by key and domain; none is 0."""
Asking: TypeAlias = tuple[str, frozenset[tuple[str, str]]]
"""Pods that nobody tells apart: namespace and labels."""

MAX_REGARDS: Final = 200
MAX_HELD: Final = 200_000
"""How many domains are remembered, for all sorts of pods together."""
BETWEEN_LOOKS: Final = 250
_NOTHING: Final[ByKey] = {}


class Holders:
    """Numbers by term and domain, of the placed pods that have the term."""

    def __init__(self) -> None:
        self._by_term: dict[Term, dict[str, int]] = {}
        self._index: SelectionIndex[Term] = SelectionIndex()
        self._changes: ChangeLog[tuple[Term, str, int]] = ChangeLog()
        self._regards: dict[Asking, _Regard] = {}

    def __bool__(self) -> bool:
        return bool(self._by_term)

    def change(self, term: Term, node: NodeInfo, amount: int) -> None:
        """A pod with the term came to a node (`amount` is positive), or left it."""
        value = node.node.metadata.labels.get(term.key)
        if value is None:
            return
        values = self._by_term.get(term)
        if values is None:
            values = self._by_term[term] = {}
            self._index.add(term.selection, term)
        _add(values, value, amount)
        if not values:
            del self._by_term[term]
            self._index.remove(term.selection, term)
        if self._regards:
            self._changes.append((term, value, amount))

    def forget(self) -> None:
        """Whom terms mean may have changed."""
        self._regards.clear()

    def about(self, pod: PodInfo, namespaces: Mapping[str, Labels], must_wait: Callable[[], bool]) -> ByKey | None:
        """The numbers of all terms that mean a pod, by key; None if others are next before all were looked at."""
        if not self._by_term:
            return _NOTHING
        meta = pod.pod.metadata
        asking = (meta.namespace, frozenset(meta.labels.items()))
        known = self._regards.pop(asking, None)
        is_new = known is None or not self._changes.reaches(known.position)
        if known is None or is_new:
            known = _Regard(pod, dict.fromkeys(self._index.find(meta.labels)), self._changes.end)
            self._make_room()
        self._regards[asking] = known
        is_current = known.catch_up(self._changes, self._by_term, namespaces, must_wait)
        return known.by_key if is_current else None

    def _make_room(self) -> None:
        total = sum(one.size for one in self._regards.values())
        while self._regards and (total > MAX_HELD or len(self._regards) >= MAX_REGARDS):
            total -= self._regards.pop(next(iter(self._regards))).size


class _Regard:
    """What placed pods say about one sort of pods."""

    __slots__ = ("_labels", "_left", "_namespace", "by_key", "position")

    def __init__(self, pod: PodInfo, terms: dict[Term, None], position: int) -> None:
        """These terms, as they are after the changes up to a position, may mean the pod."""
        self._namespace, self._labels = pod.pod.metadata.namespace, pod.pod.metadata.labels
        self._left = terms
        self.by_key: ByKey = {}
        self.position = position

    @property
    def size(self) -> int:
        """How many domains are remembered."""
        return 1 + len(self._left) + sum(map(len, self.by_key.values()))

    def catch_up(
        self,
        changes: ChangeLog[tuple[Term, str, int]],
        by_term: Mapping[Term, Mapping[str, int]],
        namespaces: Mapping[str, Labels],
        must_wait: Callable[[], bool],
    ) -> bool:
        """Looks at what changed, and at terms that were not looked at yet, some in any case; whether at all."""
        while self.position < changes.end:
            several = changes.read(self.position, BETWEEN_LOOKS)
            self.position += len(several)
            for term, value, amount in several:
                if term not in self._left and self._is_meant(term, namespaces):
                    self._add(term.key, value, amount)
            if len(several) == BETWEEN_LOOKS and must_wait():
                return False
        looked_at = 0
        while self._left:
            term, _ = self._left.popitem()
            values = by_term.get(term, {}) if self._is_meant(term, namespaces) else {}
            for value, amount in values.items():
                self._add(term.key, value, amount)
            looked_at += 1 + len(values)
            if looked_at >= BETWEEN_LOOKS:
                looked_at = 0
                if self._left and must_wait():
                    return False
        return True

    def _is_meant(self, term: Term, namespaces: Mapping[str, Labels]) -> bool:
        return term.selection.matches(self._namespace, self._labels, namespaces)

    def _add(self, key: str, value: str, amount: int) -> None:
        values = self.by_key.setdefault(key, {})
        _add(values, value, amount)
        if not values:
            del self.by_key[key]


def _add(values: dict[str, int], value: str, amount: int) -> None:
    now = values.get(value, 0) + amount
    if now:
        values[value] = now
    else:
        values.pop(value, None)
