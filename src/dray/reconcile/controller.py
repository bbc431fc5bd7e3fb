"""The loop around a controller: takes keys from a queue, lets them be reconciled, retries what fails."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from dray.api.status import ApiError
from dray.reconcile.clock import Clock
from dray.reconcile.queue import WorkQueue

K = TypeVar("K", bound=Hashable)
Reconcile = Callable[[K], Awaitable[float | None]]
"""Brings the world closer to what it should be for a key. Returns after how many seconds to look again, if at all.
Raises ApiError or OSError to be tried again later."""

Report = Callable[[str, Hashable, Exception], None]


def _silent(_name: str, _key: Hashable, _error: Exception) -> None:
    """Nobody listens."""


class Controller(Generic[K]):
    """A named queue with workers."""

    def __init__(
        self, name: str, reconcile: Reconcile[K], clock: Clock, *, workers: int = 1, report: Report = _silent
    ) -> None:
        """`report` hears of every failure that is going to be retried."""
        self.name = name
        self.queue: WorkQueue[K] = WorkQueue(name, clock)
        self._reconcile = reconcile
        self._workers = workers
        self._report = report

    async def run(self) -> None:
        """Works until cancelled."""
        tasks = [asyncio.get_running_loop().create_task(self._work()) for _ in range(self._workers)]
        try:
            await asyncio.gather(*tasks)
        finally:
            self.queue.close()
            for task in tasks:
                task.cancel()
            for task in tasks:
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    async def _work(self) -> None:
        while True:
            key = await self.queue.get()
            try:
                again = await self._reconcile(key)
            except (ApiError, OSError, TimeoutError) as error:
                self._report(self.name, key, error)
                self.queue.retry(key)
            else:
                self.queue.forget(key)
                if again is not None:
                    self.queue.add_after(key, again)
            finally:
                self.queue.done(key)
