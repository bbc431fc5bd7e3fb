"""What looking at a key costs, and how long those of its namespace then rest, so that nobody has the loop to itself.

reconcile(key) ──┬── steps on the loop ──────┬─▶ Effort.seconds ─▶ Rests: nothing of that namespace before then
                 └── beside_loop(plan, …) ───┘
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Hashable
from contextvars import ContextVar
from functools import partial
from typing import Any, Generic, ParamSpec, TypeVar

from dray.process.clock import Clock

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")

LITTLE_SECONDS = 0.010
"""What costs no more than this is free."""
REST = 4
"""So many times as long as the work took does a namespace rest: it has a fifth of the time at most."""
LONGEST_REST = 5.0
"""A process that stood still for other reasons must not rest for long, too."""
MANY = 1_000
"""A plan about so many objects is made beside the loop."""


class Effort(Generic[T]):
    """Awaits something, and adds up the seconds for which others had to wait for it."""

    def __init__(self, work: Awaitable[T], clock: Clock) -> None:
        self._work = work
        self._clock = clock
        self.seconds = 0.0

    async def count(self, other: Awaitable[R]) -> R:
        """Awaits a part of the work that is done elsewhere, and counts it, too."""
        began = self._clock.monotonic()
        try:
            return await other
        finally:
            self.seconds += self._clock.monotonic() - began

    def __await__(self) -> Generator[Any, Any, T]:
        steps = self._work.__await__()
        go_on: Callable[[], Any] = partial(next, steps)
        token = _current.set(self)
        try:
            while True:
                began = self._clock.monotonic()
                try:
                    waits_for = go_on()
                except StopIteration as done:
                    result: T = done.value
                    return result
                finally:
                    self.seconds += self._clock.monotonic() - began
                try:
                    go_on = partial(steps.send, (yield waits_for))
                except BaseException as error:
                    go_on = partial(steps.throw, error)
        finally:
            _current.reset(token)


_current: ContextVar[Effort[Any] | None] = ContextVar("effort", default=None)


async def beside_loop(count: int, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """What a pure function makes of immutable values; in a thread if they are many. Its time counts as effort."""
    if count < MANY:
        return work(*arguments, **named)
    running = asyncio.get_running_loop().run_in_executor(None, partial(work, *arguments, **named))
    effort = _current.get()
    return await (running if effort is None else effort.count(running))


class Rests:
    """Until when keys are left alone: those of a namespace together, others each by itself."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: dict[Hashable, float] = {}

    def note(self, key: Hashable, seconds: float) -> None:
        """Looking at a key took so long."""
        if seconds <= LITTLE_SECONDS:
            return
        now, whose = self._clock.monotonic(), _whose(key)
        self._until = {one: until for one, until in self._until.items() if until > now}
        self._until[whose] = min(max(self._until.get(whose, now), now) + REST * seconds, now + LONGEST_REST)

    def left(self, key: Hashable) -> float:
        """For how many seconds a key is still to be left alone."""
        until = self._until.get(_whose(key)) if self._until else None
        return 0.0 if until is None else max(until - self._clock.monotonic(), 0.0)


def _whose(key: Hashable) -> Hashable:
    return getattr(key, "namespace", "") or key
