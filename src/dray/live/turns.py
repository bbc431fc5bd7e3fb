"""Handlers that take their time: what they are told is queued, and worked off a few milliseconds at a time.

For views that live in the process of a server, whose other clients must not wait while forty thousand devices are read.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

TURN_SECONDS: Final = 0.004

Handler = Callable[[Any, Any], None]


class Turns:
    """A queue of changes. `run` until cancelled; `idle` is set while there is nothing to do."""

    def __init__(self, done: Callable[[], None]) -> None:
        """`done` is called whenever everything has been worked off."""
        self.idle = asyncio.Event()
        self._done = done
        self._queue: deque[tuple[Handler, Any, Any]] = deque()
        self._wake = asyncio.Event()
        self.idle.set()

    def later(self, handler: Handler) -> Handler:
        """A handler that only notes what it is told."""

        def note(old: Any, new: Any) -> None:
            self._queue.append((handler, old, new))
            if self.idle.is_set():
                self.idle.clear()
                self._wake.set()

        return note

    async def run(self) -> None:
        """Works it off, with a turn for others in between."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._queue:
                end = time.perf_counter() + TURN_SECONDS
                while self._queue and time.perf_counter() < end:
                    handler, old, new = self._queue.popleft()
                    handler(old, new)
                await asyncio.sleep(0)
            self.idle.set()
            self._done()
