"""Work that takes longer than a turn of the event loop, done in a thread beside it, a piece at a time.

The thread shares the interpreter with the loop: it rests as long as it works, and gives the interpreter back within
half a millisecond, so that whoever needs the loop gets it at once.
"""

from __future__ import annotations

import asyncio
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Final, Generic, Protocol, TypeVar

from dray.process.clock import Clock

PROGRESS_SECONDS: Final = 0.2
"""How often at most it is told that there are new results while there is more to do."""
SWITCH_SECONDS: Final = 0.0005
"""How long the thread keeps the interpreter once the loop wants it."""
LONGEST_REST_SECONDS: Final = 0.01

Piece = TypeVar("Piece")
Given = TypeVar("Given", covariant=True)


class Waiting(Protocol[Given]):
    """What is to be done."""

    def __len__(self) -> int: ...

    def next(self) -> Given | None:
        """The piece to do now."""


class ThreadWork(ABC, Generic[Piece]):
    """Does what waits. `changed` is called on the loop when there are new results."""

    def __init__(
        self,
        waiting: Waiting[Piece],
        clock: Clock,
        changed: Callable[[], None],
        *,
        look_again_seconds: float,
        processor_time: Callable[[], float],
    ) -> None:
        """`look_again_seconds`: how often to look whether what was given up is to be tried again."""
        self._waiting = waiting
        self._clock = clock
        self._changed = changed
        self._look_again_seconds = look_again_seconds
        self._processor_time = processor_time
        self._wake = asyncio.Event()
        self._is_stopped = False
        self._told_at = 0.0

    def look(self) -> None:
        """To be called after each turn: there may be work."""
        if len(self._waiting):
            self._wake.set()

    async def run(self) -> None:
        """Works until cancelled."""
        pool: ThreadPoolExecutor | None = None
        again = asyncio.create_task(self._forget_from_time_to_time())
        try:
            while True:
                await self._wake.wait()
                if pool is None:
                    sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_SECONDS))
                    pool = ThreadPoolExecutor(1, thread_name_prefix=type(self).__name__)
                piece = self._waiting.next()
                if piece is None:
                    self._wake.clear()
                    continue
                await self._work_on(piece, pool)
        finally:
            self._is_stopped = True
            again.cancel()
            if pool is not None:
                pool.shutdown(wait=False, cancel_futures=True)

    @abstractmethod
    async def _work_on(self, piece: Piece, pool: Executor) -> None:
        """Does a piece of work in the thread, and keeps what came of it."""

    @abstractmethod
    def _forget_given_up(self) -> bool:
        """Lets what was given up be tried again, if it is time for that; whether there was anything."""

    def _tell(self) -> None:
        """Says that there are results: at once if nothing is left to do, else from time to time."""
        now = self._clock.monotonic()
        if len(self._waiting) and now - self._told_at < PROGRESS_SECONDS:
            return
        self._told_at = now
        self._changed()

    async def _forget_from_time_to_time(self) -> None:
        while True:
            await self._clock.sleep(self._look_again_seconds)
            if self._forget_given_up():
                self._changed()

    def _rest(self, worked_since: float) -> float:
        """In the thread: somebody else's turn, for as long as the work took. When work goes on."""
        time.sleep(min(self._processor_time() - worked_since, LONGEST_REST_SECONDS))
        return self._processor_time()
