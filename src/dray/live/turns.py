"""Handlers that take their time: what they are told is noted, and worked off later, a few milliseconds at a time.

For views that live in the process of a server, whose other clients must not wait while forty thousand devices are read.
What happens to an object until its turn comes is told as one change: from what it was to what it is.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

TURN_SECONDS: Final = 0.004

Handler = Callable[[Any, Any], None]


class Turns:
    """Changes to work off. `run` until cancelled; `idle` is set while there is nothing to do."""

    def __init__(self, done: Callable[[], None], sleep: Callable[[float], Awaitable[None]]) -> None:
        """`done` is called whenever everything has been worked off."""
        self.idle = asyncio.Event()
        self.pause = 0.0
        """Seconds from the first change until work begins: what happens meanwhile is done with it."""
        self._done = done
        self._sleep = sleep
        self._changes: dict[tuple[Handler, str], tuple[Any, Any]] = {}
        self._wake = asyncio.Event()
        self.idle.set()

    def later(self, handler: Handler) -> Handler:
        """A handler that only notes what it is told. An object is known by its uid: one made anew is another."""

        def note(old: Any, new: Any) -> None:
            key = (handler, (old if new is None else new).metadata.uid)
            known = self._changes.get(key)
            self._changes[key] = (old if known is None else known[0], new)
            if self.idle.is_set():
                self.idle.clear()
                self._wake.set()

        return note

    async def run(self) -> None:
        """Works it off, with a turn for others in between."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self.pause:
                await self._sleep(self.pause)
            while self._changes:
                await self._work_off()
            self.idle.set()
            self._done()

    async def _work_off(self) -> None:
        changes, self._changes = self._changes, {}
        end = time.perf_counter() + TURN_SECONDS
        for (handler, _), (old, new) in changes.items():
            if old is not None or new is not None:  # it came and went
                handler(old, new)
            if time.perf_counter() > end:
                await asyncio.sleep(0)
                end = time.perf_counter() + TURN_SECONDS
        await asyncio.sleep(0)
