"""Sleeping until a time or until something happens, whichever is first."""

from __future__ import annotations

import asyncio

from dray.process.clock import Clock

LONGEST = 30.0
"""Seconds after which one looks at the time again: the wall clock may have been set."""


class Wakeup:
    """One sleeper, woken by the clock or by `set`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._event = asyncio.Event()

    def set(self) -> None:
        """Something happened: wake up, or do not fall asleep."""
        self._event.set()

    async def wait(self, seconds: float | None) -> None:
        """Returns after so many seconds (None: no matter how many), or when something has happened."""
        if seconds is not None and seconds <= 0 and not self._event.is_set():
            await asyncio.sleep(0)
            return
        if seconds is None:
            await self._event.wait()
        elif not self._event.is_set():
            alarm = asyncio.get_running_loop().create_task(self._alarm(min(seconds, LONGEST)))
            try:
                await self._event.wait()
            finally:
                alarm.cancel()  # not awaited: whoever cancels us meanwhile must not be mistaken for the alarm
        self._event.clear()

    async def _alarm(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self._event.set()
