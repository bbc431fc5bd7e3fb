"""How many pods are on the node that has most of them, kept current as they come and go. Pure."""

from __future__ import annotations

from collections import Counter


class NodeCounts:
    """Pods by uid, each on a node. What is kept for the fullest node costs nothing to ask:

    nodes: node-1 ─▶ 3, node-2 ─▶ 3, node-3 ─▶ 1        levels: 3 ─▶ 2 nodes, 1 ─▶ 1 node        fullest: 3
    """

    def __init__(self) -> None:
        self._node_of: dict[str, str] = {}
        self._pods_on: Counter[str] = Counter()
        self._levels: Counter[int] = Counter()
        self.fullest = 0

    def put(self, uid: str, node: str) -> None:
        """A pod is on a node."""
        before = self._node_of.get(uid)
        if before != node:
            if before is not None:
                self._move(before, -1)
            self._node_of[uid] = node
            self._move(node, 1)

    def drop(self, uid: str) -> None:
        """A pod is gone, if it was there."""
        node = self._node_of.pop(uid, None)
        if node is not None:
            self._move(node, -1)

    def _move(self, node: str, by: int) -> None:
        before = self._pods_on[node]
        after = self._pods_on[node] = before + by
        self._levels[before] -= 1
        self._levels[after] += 1
        if not after:
            del self._pods_on[node]
        if after > self.fullest or not self._levels[self.fullest]:
            self.fullest = after  # one pod at a time: whoever is no longer the fullest alone is so with one less
