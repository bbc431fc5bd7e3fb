"""Counts the steps of a search and stops it when it takes too long."""

from __future__ import annotations

from typing import Final

from dray.allocator.results import Options, OutOfBudget

_STEPS_PER_LOOK: Final = 64
"""How often the clock is read: reading it costs as much as a step."""


class Budget:
    """One search's budget. A step is a slot to fill, or a device that turned out not to be available for it."""

    __slots__ = ("_clock", "_deadline", "_limit", "steps")

    def __init__(self, options: Options) -> None:
        self.steps = 0
        self._limit = options.max_steps
        self._clock = options.clock if options.max_seconds is not None else None
        self._deadline = 0.0
        if self._clock is not None and options.max_seconds is not None:
            self._deadline = self._clock() + options.max_seconds

    def step(self) -> None:
        """Raises OutOfBudget."""
        self.steps += 1
        if self.steps > self._limit:
            raise OutOfBudget
        if self._clock is not None and self.steps % _STEPS_PER_LOOK == 1 and self._clock() > self._deadline:
            raise OutOfBudget
