"""Who is where, by topology: nodes by label, and pods by what others say about them.

    Nodes by (key, value)       made for a key when a pod first asks for it
    DomainCounts                what pods are worth to terms, by domain: made when a pod first asks
    Holders                     placed pods by what they say about others

What happens is written down, and whoever is asked catches up: a placed pod costs an entry, one decision what its own
terms ask for and what happened since. Nothing is counted that nobody asks for, and what nobody has asked for longest is
forgotten first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from dray.allocator.change_log import ChangeLog
from dray.api.generated.core import Node
from dray.api.recent import Newest
from dray.scheduling import worth
from dray.scheduling.domain_counts import BETWEEN_LOOKS, DomainCounts, Move
from dray.scheduling.holders import ByKey, Holders
from dray.scheduling.node_info import NodeInfo
from dray.scheduling.pod_info import PodInfo
from dray.scheduling.pod_terms import Labels, Selection, Spread

Domains = dict[str | None, dict[str, NodeInfo]]
"""Nodes by the value of a label; those that lack it are under None."""
CountKey = tuple[str, worth.Weights, str, bytes]
"""How pods are counted, those of which selections, in the domains of which key, on which nodes."""

MAX_COUNTS: Final = 5_000
"""Counts that are kept at a time, also those about domains that no node is in."""
MAX_COUNTED: Final = 500_000
"""How many domains are counted in, all selections together."""
MAX_KEYS: Final = 64
MAX_SCOPES: Final = 64
MANY_LOOKS: Final = 20
"""After so many looks at the clock, each after some nodes and pods were counted, a turn is half over or more."""


class StillCounting(Exception):
    """There was no time to count all pods that somebody speaks of."""


def _never() -> bool:
    return False


class Topology:
    """Follows nodes and the pods on them."""

    def __init__(self, nodes: Mapping[str, NodeInfo]) -> None:
        self.namespaces: dict[str, Labels] = {}
        self._nodes = nodes
        self._domains: Newest[str, Domains] = Newest(MAX_KEYS)
        self._changes: ChangeLog[Move] = ChangeLog()
        self._counts: dict[CountKey, DomainCounts] = {}
        self._scopes: Newest[bytes, dict[str, tuple[Node, bool]]] = Newest(MAX_SCOPES)
        """Whether a node counts for spread constraints with the same scope."""
        self._hurry: Callable[[], bool] = _never
        self._looks = 0
        self._keeping_away = Holders()
        self._attracting = Holders()

    # What happens

    def set_namespace(self, name: str, labels: Labels | None) -> None:
        """A namespace came, changed or went: whoever is selected by its labels is counted anew."""
        if labels is None:
            self.namespaces.pop(name, None)
        else:
            self.namespaces[name] = labels
        for key in [key for key in self._counts if any(one.namespace_selector is not None for _, one in key[1])]:
            del self._counts[key]
        self._keeping_away.forget()
        self._attracting.forget()

    def add_node(self, node: NodeInfo) -> None:
        """A node came, with its pods."""
        for key, domains in self._domains.items():
            domains.setdefault(node.node.metadata.labels.get(key), {})[node.name] = node
        self._note(1, None, node)
        for pod in node.pods.values():
            self.add_pod(pod, node)

    def remove_node(self, node: NodeInfo) -> None:
        """A node goes, or is about to change."""
        for pod in node.pods.values():
            self.add_pod(pod, node, -1)
        self._note(-1, None, node)
        for key, domains in self._domains.items():
            value = node.node.metadata.labels.get(key)
            domains[value].pop(node.name, None)
            if not domains[value]:
                del domains[value]

    def add_pod(self, pod: PodInfo, node: NodeInfo, step: int = 1) -> None:
        """A pod came to a node, or left it (`step` -1)."""
        if pod.terms is not None:
            for term in pod.terms.anti_affinity:
                self._keeping_away.change(term, node, step)
            for weighted in pod.terms.attraction:
                self._attracting.change(weighted.term, node, step * weighted.weight)
        self._note(step, pod, node)

    def _note(self, step: int, pod: PodInfo | None, node: NodeInfo) -> None:
        if self._counts:
            self._changes.append(Move(step, pod, node.node))

    # What decisions ask

    def domains(self, key: str) -> Domains:
        """Nodes by the value of a label. Raises StillCounting if others are next by the time they are found."""
        known = self._domains.get(key)
        if known is not None:
            return self._domains.keep(key, known)  # asked for last
        known = self._domains.keep(key, {})
        for node in self._nodes.values():
            known.setdefault(node.node.metadata.labels.get(key), {})[node.name] = node
        self._looks += len(self._nodes) // BETWEEN_LOOKS
        if self._must_wait():
            raise StillCounting
        return known

    def nodes_of(self, key: str, values: Iterator[str]) -> Iterator[NodeInfo]:
        """The nodes of some domains; nothing is looked up before the first is asked for."""
        for value in values:
            yield from self.domains(key).get(value, {}).values()

    def count(self, weights: worth.Weights, key: str) -> DomainCounts:
        """What pods are worth by domain, of all selections that are about them together."""
        return self._count(
            ("sum", weights, key, b""), lambda: DomainCounts(key, worth.sum_of(weights, self.namespaces))
        )

    def count_all(self, selections: tuple[Selection, ...], key: str) -> DomainCounts:
        """How many pods that all selections are about are in which domain."""
        weights = tuple([(1, one) for one in selections])
        return self._count(
            ("all", weights, key, b""), lambda: DomainCounts(key, worth.all_of(selections, self.namespaces))
        )

    def count_spread(self, spread: Spread, suits: Callable[[Node], bool]) -> DomainCounts:
        """How many pods that stay are in which domain, on nodes that suit pods with the constraint's scope."""
        weights = ((1, spread.selection),)

        def make() -> DomainCounts:
            counts = worth.sum_of(weights, self.namespaces)

            def staying(pod: PodInfo) -> int:
                return 0 if pod.pod.metadata.deletion_timestamp is not None else counts(pod)

            return DomainCounts(spread.key, staying, self._once(spread.scope, suits))

        return self._count(("staying", weights, spread.key, spread.scope), make)

    def _once(self, scope: bytes, suits: Callable[[Node], bool]) -> Callable[[Node], bool]:
        """The same, found out once for all constraints with the scope."""
        known = self._scopes.keep(scope, self._scopes.get(scope, {}))

        def suits_once(node: Node) -> bool:
            found = known.get(node.metadata.name)
            if found is None or (found[0] is not node and not _is_alike(found[0], node)):
                if len(known) > 2 * len(self._nodes):
                    known.clear()  # nodes came and went
                found = known[node.metadata.name] = node, suits(node)
            return found[1]

        return suits_once

    def keeping_away(self, pod: PodInfo) -> ByKey:
        """By key, the domains from which placed pods keep this one away."""
        return self._about(self._keeping_away, pod)

    def attracting(self, pod: PodInfo) -> ByKey:
        """By key, how much placed pods like this one in which domains."""
        return self._about(self._attracting, pod)

    def _about(self, holders: Holders, pod: PodInfo) -> ByKey:
        found = holders.about(pod, self.namespaces, self._must_wait)
        if found is None:
            raise StillCounting
        return found

    @property
    def keeps_any_away(self) -> bool:
        """Whether there is a placed pod that keeps others away."""
        return bool(self._keeping_away)

    def _count(self, key: CountKey, make: Callable[[], DomainCounts]) -> DomainCounts:
        known = self._counts.pop(key, None)
        if known is None or not self._changes.reaches(known.position):
            known = make()
            known.begin(self._nodes, self._changes.end)
            self._make_room()
        self._counts[key] = known
        if not known.catch_up(self._changes, self._must_wait):
            raise StillCounting
        return known

    def hurry(self, must_wait: Callable[[], bool] | None) -> None:
        """From now on counting ends with StillCounting when others are next, and goes on when it is asked for again;
        None for no hurry."""
        self._hurry = must_wait or _never
        self._looks = 0

    def _must_wait(self) -> bool:
        self._looks += 1
        return self._hurry()

    @property
    def has_counted_much(self) -> bool:
        """Whether most of a turn went by with counting, since there is hurry: what takes long is for the next one."""
        return self._looks >= MANY_LOOKS

    def _make_room(self) -> None:
        """For one more, which may have as many domains as there are nodes."""
        total = len(self._nodes) + sum(len(counts.by_value) for counts in self._counts.values())
        while self._counts and (total > MAX_COUNTED or len(self._counts) >= MAX_COUNTS):
            total -= len(self._counts.pop(next(iter(self._counts))).by_value)


def _is_alike(one: Node, other: Node) -> bool:
    """Whether all constraints say the same of a node as it was and as it is."""
    return one.metadata.labels == other.metadata.labels and one.spec.taints == other.spec.taints
