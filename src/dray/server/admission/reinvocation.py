"""Who is asked a second time: those who want to see what others changed after them (`reinvocationPolicy: IfNeeded`).

round 0    a ─▶ b (changes) ─▶ c           a wants to be asked again, and b has changed something after it
round 1    built-in plugins ─▶ a           whoever was not asked in round 0 is not asked now either
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

__all__ = ["Reinvocation"]


class Reinvocation:
    """The state of one request, for hooks of one sort."""

    def __init__(self) -> None:
        self.round = 0
        self._earlier: set[Hashable] = set()
        """Who was asked since the last change, and wants to hear of later ones."""
        self._due: set[Hashable] = set()
        self._output: Any = None

    def next_round(self) -> None:
        """From now on only those are asked who are due."""
        self.round += 1

    def begin(self, new: Any) -> None:
        """A round begins. What somebody else has changed since the last one ended concerns all."""
        if self.round and new != self._output:
            self._changed()

    def end(self, new: Any) -> None:
        """A round has ended."""
        self._output = new

    def includes(self, key: Hashable) -> bool:
        """Whether a hook is asked in this round."""
        return not self.round or key in self._due

    def invoked(self, key: Hashable, *, has_changed: bool, wants_more: bool) -> None:
        """A hook was asked."""
        if has_changed:
            self._changed()
        if wants_more:
            self._earlier.add(key)

    def _changed(self) -> None:
        self._due |= self._earlier
        self._earlier.clear()
