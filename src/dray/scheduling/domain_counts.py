"""How many pods there are in each domain of a topology, or what they are worth, kept current by what changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from dray.allocator.change_log import ChangeLog
from dray.api.generated.core import Node
from dray.scheduling.node_info import NodeInfo
from dray.scheduling.pod_info import PodInfo

BETWEEN_LOOKS: Final = 250
"""How many pods and nodes are looked at before it is asked whether others are next."""

Amount = Callable[[PodInfo], int]
IsCounted = Callable[[Node], bool]


class Move(NamedTuple):
    """A pod, or a node (`pod` is None), came (`step` 1) or went (-1); the node as it was then."""

    step: int
    pod: PodInfo | None
    node: Node


class DomainCounts:
    """Pods by domain, and domains by number of pods.

    by_value   {"a": 2, "b": 0, "c": 0}          every domain in which a node counts
    levels     {0: {"b", "c"}, 2: {"a"}}         so that the emptiest are found without a look at all

    Nothing is told to it: it is current after it caught up with the changes.
    """

    __slots__ = ("_amount", "_counts_node", "_left", "_nodes", "by_value", "key", "levels", "position", "total")

    def __init__(self, key: str, amount: Amount, counts_node: IsCounted | None = None) -> None:
        """Of nodes with the label `key`, those are counted for which `counts_node` is true; all if it is None."""
        self.key = key
        self.by_value: dict[str, int] = {}
        self.levels: dict[int, dict[str, None]] = {}
        self.total = 0
        self.position = 0
        """How far it has caught up with changes."""
        self._nodes: dict[str, int] = {}
        self._amount = amount
        self._counts_node = counts_node
        self._left: dict[str, NodeInfo] = {}

    def begin(self, nodes: Mapping[str, NodeInfo], position: int) -> None:
        """These nodes are to be counted, as they are after the changes up to a position."""
        self._left = dict(nodes)
        self.position = position

    def catch_up(self, changes: ChangeLog[Move], must_wait: Callable[[], bool]) -> bool:
        """Counts what changed, and nodes that are not counted yet, until all is counted, or others are next; whether
        all is. Some is counted in any case."""
        while self.position < changes.end:
            several = changes.read(self.position, BETWEEN_LOOKS)
            self.position += len(several)
            for change in several:
                self._apply(change)
            if len(several) == BETWEEN_LOOKS and must_wait():
                return False
        looked_at = 0
        while self._left:
            _, node = self._left.popitem()
            looked_at += 1 + len(node.pods)
            value = self._value(node.node)
            if value is not None:
                self._add_node(value)
                self._change(value, sum(map(self._amount, node.pods.values())))
            if looked_at >= BETWEEN_LOOKS:
                looked_at = 0
                if self._left and must_wait():
                    return False
        return True

    @property
    def lowest(self) -> int:
        """The number of pods in the emptiest domain; 0 if there is none."""
        return min(self.levels, default=0)

    def emptiest_first(self, most: int | None = None) -> Iterator[str]:
        """Domains by number of pods, up to those with `most`. Of use until pods or nodes change."""
        for level in sorted(self.levels):
            if most is not None and level > most:
                return
            yield from self.levels[level]

    def fullest_first(self) -> Iterator[str]:
        """Domains with pods, those with the most first."""
        for level in sorted(self.levels, reverse=True):
            if level:
                yield from self.levels[level]

    def best_first(self) -> Iterator[str]:
        """Domains that are worth more than others, the best first."""
        for level in sorted(self.levels, reverse=True)[:-1]:
            yield from self.levels[level]

    def _apply(self, change: Move) -> None:
        """A change of a node that is not counted yet is of no concern: it is counted as it is then."""
        step, pod, node = change
        if node.metadata.name in self._left:
            if pod is None:
                del self._left[node.metadata.name]
            return
        value = self._value(node)
        if value is None:
            return
        if pod is not None:
            self._change(value, step * self._amount(pod))
        elif step > 0:
            self._add_node(value)
        else:
            self._nodes[value] -= 1
            if not self._nodes[value]:
                del self._nodes[value]
                self._leave(value, self.by_value.pop(value))

    def _value(self, node: Node) -> str | None:
        value = node.metadata.labels.get(self.key)
        if value is not None and self._counts_node is not None and not self._counts_node(node):
            return None
        return value

    def _add_node(self, value: str) -> None:
        self._nodes[value] = self._nodes.get(value, 0) + 1
        if value not in self.by_value:
            self.by_value[value] = 0
            self.levels.setdefault(0, {})[value] = None

    def _change(self, value: str, step: int) -> None:
        if not step:
            return
        before = self.by_value[value]
        self._leave(value, before)
        self.by_value[value] = before + step
        self.levels.setdefault(before + step, {})[value] = None
        self.total += step

    def _leave(self, value: str, level: int) -> None:
        there = self.levels[level]
        del there[value]
        if not there:
            del self.levels[level]
