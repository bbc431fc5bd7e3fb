"""How good the nodes are that pods of one kind were compared on, kept for the next of them: few change in between.

    decision ─▶ the first nodes that fit, each with its score ─▶ keep
    next one ─▶ best: what has happened to nodes since?
                  ├─ something to some of those, and they still fit ─▶ these are rated anew, and the best is taken
                  └─ one is full, or something to one before the last of them ─▶ None: all are compared again

Only for pods of which each node has its own opinion, which depends on nothing but its room: the answer is that of
comparing all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

import msgspec

from dray.api.recent import Bounded
from dray.scheduling.node_info import NodeInfo
from dray.scheduling.node_table import NodeTable
from dray.scheduling.pod_info import PodInfo, Resources
from dray.scheduling.scoring import Score, rate

MOST_KINDS: Final = 64
MOST_CHANGES: Final = 64
"""After more of them, to compare all costs no more than to look at each."""


class Rated(Protocol):
    """A node that fits, and how good it is."""

    @property
    def score(self) -> Score:
        """Larger ones are better."""
        ...

    @property
    def node(self) -> NodeInfo:
        """The node."""
        ...


class _Ranking(msgspec.Struct, eq=False, gc=False):
    requests: Resources
    """Those of one spec are one object: by it the pods are known that may share this."""
    scores: dict[str, Score]
    """By node, in the order of their names."""
    last: str | None
    """The last node that was looked at; None if that was the last of all."""
    seen: int
    """How much of what happened to nodes counts already."""


class Rankings:
    """By what pods ask for, as far as there is room."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._known: Bounded[int, _Ranking] = Bounded(MOST_KINDS)
        """By the identity of the requests, which are kept alive here."""

    def keep(self, pod: PodInfo, found: Sequence[Rated], *, are_all: bool) -> None:
        """These nodes fit, and nothing between them does; `are_all` if nothing behind them does, either."""
        scores = {one.node.name: one.score for one in found}
        last = None if are_all else found[-1].node.name
        self._known.keep(id(pod.requests), _Ranking(pod.requests, scores, last, self._nodes.changes.end))

    def best(self, pod: PodInfo, refuses: Callable[[NodeInfo], object]) -> NodeInfo | None:
        """The node that comparing all of them would choose; None if that has to be done."""
        known = self._known.get(id(pod.requests))
        changes = self._nodes.changes
        if known is None or changes.end - known.seen > MOST_CHANGES or not changes.reaches(known.seen):
            return None
        for name in changes.read(known.seen):
            if name in known.scores:
                node = self._nodes.get(name)
                if node is None or refuses(node):
                    return None
                known.scores[name] = rate(pod, node)
            elif known.last is None or name < known.last:
                return None
        known.seen = changes.end
        return self._nodes.get(max(known.scores, key=known.scores.__getitem__))
