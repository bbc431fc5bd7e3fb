"""Decisions that look at more nodes than a turn has room for: what they found out so far, until they are made again.

    decision ─▶ so many nodes refuse the pod ─▶ keep ─▶ StillDeciding ─▶ others' turns
        ▲                                                                           │
        └── find: those nodes, but for the ones to which something happened ◀───────┘

Only for pods of which each node has its own opinion: what a node has against them depends on nothing but that node.
"""

from __future__ import annotations

from typing import Final

import msgspec

from dray.scheduling.node_table import NodeTable, Refusal
from dray.scheduling.pod_info import PodInfo, Resources

NODES_PER_TURN: Final = 2000
"""Some microseconds for each of them."""
MOST_TURNS: Final = 16
"""To pass over what is known takes a tenth of that, in each turn: with more of them it would be most of the work."""
MOST_ENTRIES: Final = 500_000
"""Nodes in all that is kept, of all pods: about 50 MB. Who finds no room looks at all nodes in one turn."""
STALE: Final = 10_000
"""A pod that was not decided on while so many others were is gone."""


class _Walk(msgspec.Struct, eq=False, gc=False):
    placement_key: bytes
    requests: Resources
    refusals: dict[str, Refusal]
    seen: int
    """How much of what happened to nodes counts already."""
    asked: int


class Walks:
    """By pod, as far as there is room."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._by_uid: dict[str, _Walk] = {}
        self._asked = 0

    def __len__(self) -> int:
        return len(self._by_uid)

    def nodes_per_turn(self) -> int:
        """How many nodes a decision looks at before others have a turn."""
        return max(NODES_PER_TURN, len(self._nodes) // MOST_TURNS)

    def find(self, pod: PodInfo) -> dict[str, Refusal]:
        """What nodes have against a pod, as far as it was found out and is still so. Whoever asks may keep it."""
        self._asked += 1
        walk = self._by_uid.pop(pod.pod.metadata.uid, None) if self._by_uid else None
        if walk is None or walk.requests is not pod.requests or walk.placement_key != pod.placement_key:
            return {}
        changes = self._nodes.changes
        if not changes.reaches(walk.seen):
            return {}
        for name in changes.read(walk.seen):
            walk.refusals.pop(name, None)
        return walk.refusals

    def keep(self, pod: PodInfo, refusals: dict[str, Refusal]) -> bool:
        """Keeps what was found out; whether there is room for it."""
        if not self._has_room():
            self._by_uid = {uid: walk for uid, walk in self._by_uid.items() if walk.asked > self._asked - STALE}
            if not self._has_room():
                return False
        walk = _Walk(pod.placement_key, pod.requests, refusals, self._nodes.changes.end, self._asked)
        self._by_uid[pod.pod.metadata.uid] = walk
        return True

    def _has_room(self) -> bool:
        return (len(self._by_uid) + 1) * len(self._nodes) <= MOST_ENTRIES
