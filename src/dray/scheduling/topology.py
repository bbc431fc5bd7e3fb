"""Who is where, by topology: nodes by label, and pods by what others say about them.

    Nodes by (key, value)       made for a key when a pod first asks for it
    DomainCounts                pods of a selection by domain: made when a pod first asks, then kept current
    Holders                     placed pods by what they say about others: whom they keep away, whom they attract

A placed pod costs a look-up per label; one decision costs what its own terms ask for. Nothing is counted that nobody
asks for, and what nobody has asked for longest is forgotten first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from dray.scheduling.domain_counts import DomainCounts
from dray.scheduling.node_info import NodeInfo
from dray.scheduling.pod_info import PodInfo
from dray.scheduling.pod_terms import Labels, Selection, Spread, Term
from dray.scheduling.selection_index import SelectionIndex

Domains = dict[str | None, dict[str, NodeInfo]]
"""Nodes by the value of a label; those that lack it are under None."""
CountKey = tuple[tuple[Selection, ...], str, bytes]

MAX_COUNTS: Final = 5_000
"""Terms that are counted at a time, also those about domains that no node is in."""
MAX_COUNTED: Final = 500_000
"""How many domains are counted in, all selections together."""
MAX_KEYS: Final = 64


class StillCounting(Exception):
    """There was no time to count all pods that somebody speaks of."""


def _never() -> bool:
    return False


class Topology:
    """Follows nodes and the pods on them."""

    def __init__(self, nodes: Mapping[str, NodeInfo]) -> None:
        self.namespaces: dict[str, Labels] = {}
        self._nodes = nodes
        self._domains: dict[str, Domains] = {}
        self._counts: dict[CountKey, DomainCounts] = {}
        self._counted: SelectionIndex[CountKey] = SelectionIndex()
        self._uncounted: set[CountKey] = set()
        """Those of which not all nodes are counted yet."""
        self._must_wait: Callable[[], bool] = _never
        self._keeping_away = Holders()
        self._attracting = Holders()

    # What happens

    def set_namespace(self, name: str, labels: Labels | None) -> None:
        """A namespace came, changed or went: whoever is selected by its labels is counted anew."""
        if labels is None:
            self.namespaces.pop(name, None)
        else:
            self.namespaces[name] = labels
        for key in [key for key in self._counts if any(one.namespace_selector is not None for one in key[0])]:
            self._forget(key)

    def add_node(self, node: NodeInfo) -> None:
        """A node came, with its pods."""
        self._change_node(node, 1)
        for key, domains in self._domains.items():
            domains.setdefault(node.node.metadata.labels.get(key), {})[node.name] = node
        for counts in self._counts.values():
            counts.add_node(node)

    def remove_node(self, node: NodeInfo) -> None:
        """A node goes, or is about to change."""
        self._change_node(node, -1)
        for key, domains in self._domains.items():
            value = node.node.metadata.labels.get(key)
            domains[value].pop(node.name, None)
            if not domains[value]:
                del domains[value]
        for counts in self._counts.values():
            counts.remove_node(node)

    def _change_node(self, node: NodeInfo, step: int) -> None:
        for pod in node.pods.values():
            if pod.terms is not None:
                self._hold(pod, node, step)

    def add_pod(self, pod: PodInfo, node: NodeInfo, step: int = 1) -> None:
        """A pod came to a node, or left it (`step` -1)."""
        if pod.terms is not None:
            self._hold(pod, node, step)
        if self._counts:
            meta = pod.pod.metadata
            for key in self._counted.find(meta.labels):
                if all(one.matches(meta.namespace, meta.labels, self.namespaces) for one in key[0]):
                    self._counts[key].add_pod(pod, node, step)

    def _hold(self, pod: PodInfo, node: NodeInfo, step: int) -> None:
        terms = pod.terms
        assert terms is not None
        for term in terms.anti_affinity:
            self._keeping_away.change(term, node, step)
        for weighted in terms.attraction:
            self._attracting.change(weighted.term, node, step * weighted.weight)

    # What decisions ask

    def domains(self, key: str) -> Domains:
        """Nodes by the value of a label."""
        known = self._domains.get(key)
        if known is None:
            if len(self._domains) >= MAX_KEYS:
                del self._domains[next(iter(self._domains))]
            known = self._domains[key] = {}
            for node in self._nodes.values():
                known.setdefault(node.node.metadata.labels.get(key), {})[node.name] = node
        return known

    def count(self, selections: tuple[Selection, ...], key: str) -> DomainCounts:
        """How many pods that all selections are about are in which domain."""
        return self._count((selections, key, b""), lambda: DomainCounts(key, self._counter(selections)))

    def count_spread(self, spread: Spread, suits: Callable[[NodeInfo], bool]) -> DomainCounts:
        """As `count`, without pods that are leaving, on nodes that suit pods with the constraint's scope."""
        selections = (spread.selection,)
        matches = self._counter(selections)

        def stays(pod: PodInfo) -> bool:
            return pod.pod.metadata.deletion_timestamp is None and matches(pod)

        return self._count((selections, spread.key, spread.scope), lambda: DomainCounts(spread.key, stays, suits))

    def keeping_away(self, pod: PodInfo) -> list[tuple[str, dict[str, int]]]:
        """By key, the domains from which placed pods keep this one away."""
        return self._keeping_away.about(pod, self.namespaces) if self._keeping_away else []

    def attracting(self, pod: PodInfo) -> list[tuple[str, dict[str, int]]]:
        """By key, how much placed pods like this one in which domains."""
        return self._attracting.about(pod, self.namespaces) if self._attracting else []

    @property
    def keeps_any_away(self) -> bool:
        """Whether there is a placed pod that keeps others away."""
        return bool(self._keeping_away)

    def _counter(self, selections: tuple[Selection, ...]) -> Callable[[PodInfo], bool]:
        namespaces = self.namespaces

        def matches(pod: PodInfo) -> bool:
            meta = pod.pod.metadata
            return all(one.matches(meta.namespace, meta.labels, namespaces) for one in selections)

        return matches

    def _count(self, key: CountKey, make: Callable[[], DomainCounts]) -> DomainCounts:
        known = self._counts.pop(key, None)
        if known is None:
            known = make()
            known.begin(self._nodes)
            self._counted.add(key[0][0], key)
            self._uncounted.add(key)
        is_counted = key not in self._uncounted or known.go_on(self._must_wait)
        if is_counted and key in self._uncounted:
            self._uncounted.discard(key)
            self._make_room(len(known.by_value))
        self._counts[key] = known
        if not is_counted:
            raise StillCounting
        return known

    def hurry(self, must_wait: Callable[[], bool] | None) -> None:
        """From now on counting ends with StillCounting when others are next, and goes on when it is asked for again;
        None for no hurry."""
        self._must_wait = must_wait or _never

    def _make_room(self, wanted: int) -> None:
        total = wanted + sum(len(counts.by_value) for counts in self._counts.values())
        while self._counts and (total > MAX_COUNTED or len(self._counts) >= MAX_COUNTS):
            oldest = next(iter(self._counts))
            total -= len(self._counts[oldest].by_value)
            self._forget(oldest)

    def _forget(self, key: CountKey) -> None:
        del self._counts[key]
        self._uncounted.discard(key)
        self._counted.remove(key[0][0], key)


class Holders:
    """Numbers by term and domain, of the placed pods that have the term."""

    def __init__(self) -> None:
        self._by_term: dict[Term, dict[str, int]] = {}
        self._index: SelectionIndex[Term] = SelectionIndex()

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
        now = values.get(value, 0) + amount
        if now:
            values[value] = now
            return
        values.pop(value, None)
        if not values:
            del self._by_term[term]
            self._index.remove(term.selection, term)

    def about(self, pod: PodInfo, namespaces: Mapping[str, Labels]) -> list[tuple[str, dict[str, int]]]:
        """The numbers of all terms that mean a pod, by key."""
        meta = pod.pod.metadata
        return [
            (term.key, self._by_term[term])
            for term in self._index.find(meta.labels)
            if term.selection.matches(meta.namespace, meta.labels, namespaces)
        ]


def nodes_of(domains: Domains, values: Iterator[str]) -> Iterator[NodeInfo]:
    """The nodes of some domains."""
    for value in values:
        yield from domains.get(value, {}).values()
