"""How many pods of a selection there are in each domain of a topology, kept current by what changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from dray.scheduling.node_info import NodeInfo
from dray.scheduling.pod_info import PodInfo

_BETWEEN_LOOKS = 500
"""How many pods and nodes are looked at before it is asked whether others are next."""

Counts = Callable[[PodInfo], bool]
IsCounted = Callable[[NodeInfo], bool]


class DomainCounts:
    """Pods by domain, and domains by number of pods.

    by_value   {"a": 2, "b": 0, "c": 0}          every domain in which a node counts
    levels     {0: {"b", "c"}, 2: {"a"}}         so that the emptiest are found without a look at all
    """

    __slots__ = ("_counts_node", "_counts_pod", "_left", "_nodes", "by_value", "key", "levels", "total")

    def __init__(self, key: str, counts_pod: Counts, counts_node: IsCounted | None = None) -> None:
        """Of nodes with the label `key`, those are counted for which `counts_node` is true; all if it is None."""
        self.key = key
        self.by_value: dict[str, int] = {}
        self.levels: dict[int, dict[str, None]] = {}
        self.total = 0
        self._nodes: dict[str, int] = {}
        self._counts_pod = counts_pod
        self._counts_node = counts_node
        self._left: dict[str, NodeInfo] = {}

    def begin(self, nodes: Mapping[str, NodeInfo]) -> None:
        """These nodes are to be counted. Until one is, what happens there is of no concern."""
        self._left = dict(nodes)

    def go_on(self, must_wait: Callable[[], bool]) -> bool:
        """Counts nodes until all are, or others are next; whether all are. Some are counted in any case."""
        looked_at = 0
        while self._left:
            node = self._left.pop(next(iter(self._left)))
            self.add_node(node)
            looked_at += 1 + len(node.pods)
            if looked_at >= _BETWEEN_LOOKS:
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

    def add_node(self, node: NodeInfo) -> None:
        """A node came, with its pods."""
        value = self._value(node)
        if value is None:
            return
        self._nodes[value] = self._nodes.get(value, 0) + 1
        if value not in self.by_value:
            self.by_value[value] = 0
            self.levels.setdefault(0, {})[value] = None
        self._change(value, sum(map(self._counts_pod, node.pods.values())))

    def remove_node(self, node: NodeInfo) -> None:
        """A node goes, with its pods: to be told before it changes."""
        if self._left.pop(node.name, None) is not None:
            return
        value = self._value(node)
        if value is None:
            return
        self._change(value, -sum(map(self._counts_pod, node.pods.values())))
        self._nodes[value] -= 1
        if not self._nodes[value]:
            del self._nodes[value]
            self._leave(value, self.by_value.pop(value))

    def add_pod(self, pod: PodInfo, node: NodeInfo, step: int = 1) -> None:
        """A pod that the selection is about came to a node, or left it (`step` -1)."""
        if node.name in self._left:
            return
        value = self._value(node)
        if value is not None and self._counts_pod(pod):
            self._change(value, step)

    def _value(self, node: NodeInfo) -> str | None:
        value = node.node.metadata.labels.get(self.key)
        if value is not None and self._counts_node is not None and not self._counts_node(node):
            return None
        return value

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
