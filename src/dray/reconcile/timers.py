"""Keys whose time comes: one task for all of them, which sleeps until the first is due."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from dray.process.clock import Clock

K = TypeVar("K", bound=Hashable)

DUE_AT_ONCE = 64
"""Keys whose time has come that are told before others get a turn of the loop."""


class Timers(Generic[K]):
    """Moments of the monotonic clock, several for a key if need be. Whoever set one too many passes over it."""

    def __init__(self, clock: Clock, due: Callable[[K, float], None]) -> None:
        """`due` is told a key, and the moment that was set for it, when that has come."""
        self._clock = clock
        self._due = due
        self._moments: list[tuple[float, int, K]] = []
        self._count = 0
        self._task: asyncio.Task[None] | None = None

    def set(self, key: K, moment: float) -> None:
        """The time of a key comes at a moment."""
        self._count += 1
        entry = (moment, self._count, key)
        heapq.heappush(self._moments, entry)
        if self._moments[0] is entry:
            self._restart()

    def reopen(self) -> None:
        """After `close`: what has been set counts."""
        if self._moments and self._task is None:
            self._restart()

    def close(self) -> None:
        """Nothing is told any more."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _restart(self) -> None:
        self.close()
        self._task = asyncio.get_running_loop().create_task(self._wait())

    async def _wait(self) -> None:
        told = 0
        while self._moments:
            moment, _, key = self._moments[0]
            wait = moment - self._clock.monotonic()
            if wait > 0:
                await self._clock.sleep(wait)
                continue
            heapq.heappop(self._moments)
            self._due(key, moment)
            told += 1
            if told % DUE_AT_ONCE == 0:
                await asyncio.sleep(0)
        self._task = None
