"""Time, injected. The real clock asks the system; the virtual one stands still until it is told to move on."""

from __future__ import annotations

import asyncio
import heapq
import time
from functools import lru_cache
from math import floor
from typing import Final, Protocol

from dray.api.times import Time, moment_at


class Clock(Protocol):
    """What time it is, and how to wait."""

    def now(self) -> float:
        """Seconds since 1970. May jump; use it for what is written down."""
        ...

    def monotonic(self) -> float:
        """Seconds from any start. Never jumps; use it for waiting and measuring."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Returns after so many seconds."""
        ...


def as_time(seconds: float) -> Time:
    """Seconds since 1970 as the API writes times: cut to the second."""
    return _as_time(floor(seconds))


@lru_cache(maxsize=64)
def _as_time(seconds: int) -> Time:
    """Most of what is written is written in the same second."""
    return Time.of(moment_at(seconds))


class RealClock:
    """The system's clock."""

    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)

    async def sleep(self, seconds: float) -> None:
        """Returns after so many seconds."""
        await asyncio.sleep(max(seconds, 0))


MOST_TURNS: Final = 2000
"""Of a loop on which time stands still: somebody may be ready all the time."""
MOMENT: Final = 0.025
"""Seconds of the loop's own clock."""


class VirtualClock:
    """A clock for tests and simulation: `advance` moves time and wakes sleepers in the order of their deadlines."""

    def __init__(self, start: float = 1_750_000_000.0) -> None:
        self._now = start
        self._jumped = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0

    def now(self) -> float:
        """Virtual seconds since 1970."""
        return self._now + self._jumped

    def monotonic(self) -> float:
        """Virtual seconds that never jump."""
        return self._now

    def jump(self, seconds: float) -> None:
        """Sets the wall clock forward or back, as an admin or NTP would; nobody wakes."""
        self._jumped += seconds

    async def sleep(self, seconds: float) -> None:
        """Returns when `advance` has moved time so far."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._count += 1
        heapq.heappush(self._sleepers, (self._now + seconds, self._count, future))
        await future

    async def advance(self, seconds: float, turns: int = 50) -> None:
        """Moves time on, stopping at each deadline to let whoever wakes do their work for some turns of the loop."""
        end = self._now + seconds
        await self.settle(turns)
        while self._sleepers and self._sleepers[0][0] <= end:
            deadline, _, future = heapq.heappop(self._sleepers)
            if future.done():
                continue
            self._now = max(self._now, deadline)
            future.set_result(None)
            await self.settle(turns)
        self._now = end
        await self.settle(turns)

    async def settle(self, turns: int = 50) -> None:
        """Lets everything that can run now run: for some turns of the loop, and on until nobody else is about to.

        Who is still at work when time moves on would be late. How many turns something takes is left to chance, and
        those who watch the store are told together, a moment apart by the loop's own clock.
        """
        loop = asyncio.get_running_loop()
        ready, timers = getattr(loop, "_ready", ()), getattr(loop, "_scheduled", ())
        for turn in range(MOST_TURNS):
            pause = 0.0
            if turn >= turns and not ready:
                pause = timers[0].when() - loop.time() if timers else MOMENT
                if pause >= MOMENT:
                    break
            await asyncio.sleep(max(pause, 0.0))
