"""Searches for devices that take longer than a turn, gone on with in a thread beside the event loop.

    decision ──▶ allocator.Aside ──▶ SearchWork (a thread, some steps at a time) ──▶ verdicts ──▶ changed() ──▶ decision

The thread shares the interpreter with the loop: it rests as long as it works, and gives the interpreter back within
half a millisecond. What is not known after the time that a filter has is given up, and tried again some minutes later.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from dray.allocator.aside import Aside, PutAside, Verdict
from dray.allocator.budget import TurnOver
from dray.process.clock import Clock

STEPS: Final = 64
"""How many steps a search takes before it is somebody else's turn; of the large ones, each takes milliseconds."""
REST_SECONDS: Final = 0.001
"""For how long there is work before there is a rest."""
SWITCH_SECONDS: Final = 0.0005
"""How long the thread keeps the interpreter once the loop wants it."""
PROGRESS_SECONDS: Final = 0.2
"""How often at most it is told that there are verdicts while there is more to do."""
AGAIN_SECONDS: Final = 300.0
"""After which searches that were given up are tried again."""


class SearchWork:
    """Goes on with what is put aside. `changed` is called on the loop when there are verdicts."""

    def __init__(
        self,
        aside: Aside,
        clock: Clock,
        changed: Callable[[], None],
        *,
        processor_time: Callable[[], float] = time.thread_time,
    ) -> None:
        self._aside = aside
        self._clock = clock
        self._changed = changed
        self._processor_time = processor_time
        self._wake = asyncio.Event()
        self._is_stopped = False
        self._told_at = 0.0

    def look(self) -> None:
        """To be called after each turn: there may be work."""
        if len(self._aside):
            self._wake.set()

    async def run(self) -> None:
        """Works until cancelled."""
        pool: ThreadPoolExecutor | None = None
        again = asyncio.create_task(self._forget_given_up())
        try:
            while True:
                await self._wake.wait()
                if pool is None:
                    sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_SECONDS))
                    pool = ThreadPoolExecutor(1, thread_name_prefix="searches")
                search = self._aside.next()
                if search is None:
                    self._wake.clear()
                    continue
                done = asyncio.get_running_loop().run_in_executor(pool, self._go_on, search, self._aside.left(search))
                verdict, spent = await done
                if self._aside.went_on(search, spent, verdict):
                    self._tell()
        finally:
            self._is_stopped = True
            again.cancel()
            if pool is not None:
                pool.shutdown(wait=False, cancel_futures=True)

    def _tell(self) -> None:
        now = self._clock.monotonic()
        if len(self._aside) and now - self._told_at < PROGRESS_SECONDS:
            return
        self._told_at = now
        self._changed()

    async def _forget_given_up(self) -> None:
        while True:
            await self._clock.sleep(AGAIN_SECONDS)
            if self._aside.forget_given_up():
                self._changed()

    # In the thread

    def _go_on(self, search: PutAside, seconds: float | None) -> tuple[Verdict | None, float]:
        """What came of the search, if it has ended, and how much processor time it took."""
        began = worked_since = self._processor_time()
        steps = 0

        def between() -> None:
            nonlocal steps, worked_since
            steps += 1
            now = self._processor_time()
            if self._is_stopped or steps > STEPS or (seconds is not None and now - began > seconds):
                raise TurnOver
            if now - worked_since > REST_SECONDS:
                time.sleep(min(now - worked_since, 0.01))  # somebody else's turn
                worked_since = self._processor_time()

        return search.go_on(between), self._processor_time() - began
