"""The running account of one evaluation.

Kubernetes charges a call by looking up the values of its arguments on a stack of everything that was evaluated
so far. An argument that is not found there makes the call free, which happens when evaluation stopped early,
and can happen in loops, where values of an earlier round are still on the stack. To arrive at the same costs
the ledger keeps that stack:

    ids       [ 3, 7, 3, 5 ]         what was evaluated, oldest first
    values    [ a, b, c, d ]         and its value
    previous  [-1,-1, 0,-1 ]         where the same id was before, or -1
    latest    { 3: 2, 7: 1, 5: 3 }   where each id is now, so that finding one takes no search
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dray.cel.values import COST_LIMIT, CostLimitExceeded

__all__ = ["UNACCOUNTED", "Ledger"]


class Ledger:
    """Counts the cost of an evaluation and ends it when the limit is passed."""

    __slots__ = ("_ids", "_latest", "_previous", "_values", "cost", "limit")

    def __init__(self, limit: int = COST_LIMIT) -> None:
        self.cost = 0
        self.limit = limit
        self._ids: list[int] = []
        self._values: list[Any] = []
        self._previous: list[int] = []
        self._latest: dict[int, int] = {}

    def record(self, id: int, value: Any, cost: int = 0) -> None:
        """Put an evaluated value on the stack and charge for it."""
        latest, ids = self._latest, self._ids
        self._previous.append(latest.get(id, -1))
        latest[id] = len(ids)
        ids.append(id)
        self._values.append(value)
        if cost:
            self.cost += cost
            if self.cost > self.limit:
                raise CostLimitExceeded

    def drop(self, id: int) -> None:
        """Take the topmost value of the id off the stack, with all above it."""
        position = self._latest.get(id, -1)
        if position >= 0:
            self._truncate(position)

    def take(self, ids: Sequence[int]) -> list[Any] | None:
        """The values of the ids, taken off the stack from the last to the first; None if one is not there."""
        found = []
        latest = self._latest
        for id in reversed(ids):
            position = latest.get(id, -1)
            if position < 0:
                return None
            found.append(self._values[position])
            self._truncate(position)
        found.reverse()
        return found

    def _truncate(self, size: int) -> None:
        ids, values, previous, latest = self._ids, self._values, self._previous, self._latest
        for _ in range(len(ids) - size):
            latest[ids.pop()] = previous.pop()
            values.pop()


class _Unaccounted(Ledger):
    """Keeps no account. Nothing finds what it asks for here, and what is not found costs nothing."""

    __slots__ = ()

    def record(self, id: int, value: Any, cost: int = 0) -> None:
        """Nobody wants to know."""

    def drop(self, id: int) -> None:
        """There is nothing to drop."""

    def take(self, ids: Sequence[int]) -> list[Any] | None:  # noqa: ARG002 - what a ledger is asked
        """Nothing is there."""
        return None


UNACCOUNTED: Final = _Unaccounted()
"""For evaluations that are short anyway; it has no state."""
