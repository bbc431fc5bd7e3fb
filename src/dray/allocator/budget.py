"""Counts the steps of a search, stops it when it takes too long, and interrupts it when its turn is over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dray.allocator.results import Options, OutOfBudget

_STEPS_PER_LOOK: Final = 64
"""How often the clock is read: reading it costs as much as a step."""


class Budget:
    """One search's budget. A step is a slot to fill, or a device that turned out not to be available for it."""

    __slots__ = ("_between", "_clock", "_deadline", "_limit", "_until", "steps")

    def __init__(self, options: Options, between: Callable[[], None] | None = None) -> None:
        """`between` is called before each step, and may raise TurnOver."""
        self.steps = 0
        self._between = between
        self._until = options.until
        self._limit = options.max_steps
        self._clock = options.clock if options.max_seconds is not None else None
        self._deadline = 0.0
        if self._clock is not None and options.max_seconds is not None:
            self._deadline = self._clock() + options.max_seconds

    def step(self) -> None:
        """Raises OutOfBudget, and TurnOver."""
        if self._between is not None:
            self._between()
        self.steps += 1
        if self.steps > self._limit or (self._until is not None and self._until()):
            raise OutOfBudget
        if self._clock is not None and self.steps % _STEPS_PER_LOOK == 1 and self._clock() > self._deadline:
            raise OutOfBudget


class TurnOver(Exception):
    """Raised between two steps of a search: others are next. It can go on later."""
