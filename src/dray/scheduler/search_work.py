"""Searches for devices that take longer than a turn, gone on with in a thread beside the event loop.

    decision ──▶ allocator.Aside ──▶ SearchWork (a thread, some steps at a time) ──▶ verdicts ──▶ changed() ──▶ decision

What is not known after the time that a filter has is given up, and tried again some minutes later.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Final

from dray.allocator.aside import Aside, PutAside, Verdict
from dray.allocator.budget import TurnOver
from dray.process.clock import Clock
from dray.reconcile.thread_work import ThreadWork

STEPS: Final = 64
"""How many steps a search takes before it is somebody else's turn; of the large ones, each takes milliseconds."""
REST_SECONDS: Final = 0.001
"""For how long there is work before there is a rest."""
AGAIN_SECONDS: Final = 300.0
"""After which searches that were given up are tried again."""


class SearchWork(ThreadWork[PutAside]):
    """Goes on with what is put aside."""

    def __init__(
        self,
        aside: Aside,
        clock: Clock,
        changed: Callable[[], None],
        *,
        processor_time: Callable[[], float] = time.thread_time,
    ) -> None:
        super().__init__(aside, clock, changed, look_again_seconds=AGAIN_SECONDS, processor_time=processor_time)
        self._aside = aside

    async def _work_on(self, piece: PutAside, pool: Executor) -> None:
        done = asyncio.get_running_loop().run_in_executor(pool, self._go_on, piece, self._aside.left(piece))
        verdict, spent = await done
        if self._aside.went_on(piece, spent, verdict):
            self._tell()

    def _forget_given_up(self) -> bool:
        return self._aside.forget_given_up()

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
                worked_since = self._rest(worked_since)

        return search.go_on(between), self._processor_time() - began
