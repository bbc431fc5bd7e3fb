"""Time that passes as usual, and can be moved on: a test need not wait for the hour that a taint tolerates."""

from __future__ import annotations

import asyncio
import time
from typing import Final

STEP_SECONDS: Final = 2.0
PAUSE_SECONDS: Final = 0.002


class MovableClock:
    """The system's clock, ahead of it by as much as `advance` says."""

    def __init__(self) -> None:
        self._ahead = 0.0
        self._moved = asyncio.Event()

    def now(self) -> float:
        """Seconds since 1970."""
        return time.time() + self._ahead

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic() + self._ahead

    async def sleep(self, seconds: float) -> None:
        """Returns when so much time has passed, or was moved on."""
        end = self.monotonic() + seconds
        while (left := end - self.monotonic()) > 0:
            moved = self._moved
            try:
                async with asyncio.timeout(left):
                    await moved.wait()
            except TimeoutError:
                return
        await asyncio.sleep(0)

    async def advance(self, seconds: float) -> None:
        """Moves time on, in small steps: whoever sleeps wakes in order, and has a moment to act, as nodes that beat.

        Raises ValueError for going back.
        """
        if seconds < 0:
            raise ValueError(f"time can only be moved on, not by {seconds:g} seconds")
        while seconds > 0:
            self._ahead += min(seconds, STEP_SECONDS)
            seconds -= STEP_SECONDS
            self._moved.set()
            self._moved = asyncio.Event()
            await asyncio.sleep(PAUSE_SECONDS)
