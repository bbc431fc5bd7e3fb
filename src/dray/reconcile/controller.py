"""The loop around a controller: takes keys from a queue, lets them be reconciled, retries what fails."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Generic, TypeVar

from dray.api.status import ApiError
from dray.process.clock import Clock
from dray.process.tasks import end, is_told_to_end, run_together
from dray.reconcile import fair_turns
from dray.reconcile.effort import Effort, Rests
from dray.reconcile.queue import WorkQueue

log = logging.getLogger(__name__)

SHARES = 8
"""So many namespaces may hold up all the workers that one has before others wait for them."""

K = TypeVar("K", bound=Hashable)
Reconcile = Callable[[K], Awaitable[float | None]]
"""Brings the world closer to what it should be for a key. Returns after how many seconds to look again, if at all.
Raises ApiError, OSError or TimeoutError to be tried again later; anything else is a mistake, which the log shows with
its traceback, and is tried again, too."""

Report = Callable[[str, Hashable, Exception], None]


def _silent(_name: str, _key: Hashable, _error: Exception) -> None:
    """Nobody listens."""


class Controller(Generic[K]):
    """A named queue with workers."""

    def __init__(
        self, name: str, reconcile: Reconcile[K], clock: Clock, *, workers: int = 1, report: Report = _silent
    ) -> None:
        """So many `workers` are there for each namespace, and eight times as many in all, of which most are not
        started before they are needed: what is written may be held up by a webhook of the namespace.

        `report` hears of every failure that is going to be retried.
        """
        self.name = name
        self.queue: WorkQueue[K] = WorkQueue(name, clock, workers)
        self._reconcile = reconcile
        self._workers = workers
        self._helpers: list[asyncio.Task[None]] = []
        self._runner: asyncio.Task[Any] | None = None
        self._report = report
        self._clock = clock
        self._rests = Rests(clock)

    async def run(self) -> None:
        """Works until cancelled; called again, it goes on with what was left."""
        self.queue.reopen()
        self._runner = asyncio.current_task()
        self.queue.on_shortage = self._hire
        try:
            await run_together(*(self._work() for _ in range(self._workers)))
        finally:
            self.queue.on_shortage = None
            self.queue.close()
            helpers, self._helpers = self._helpers, []
            await end(helpers)

    def _hire(self) -> None:
        """There is work, and all who could do it are held up, or told to end."""
        if len(self._helpers) < (SHARES - 1) * self._workers and not self._is_ending:
            self._helpers.append(asyncio.get_running_loop().create_task(self._work()))

    @property
    def _is_ending(self) -> bool:
        return self._runner is None or self._runner.cancelling() > 0

    async def _work(self) -> None:
        turns = fair_turns.of_running_loop()
        while True:
            key = await self.queue.get()
            try:
                if self._is_ending:  # what others let go of is not for a helper
                    raise asyncio.CancelledError
                await turns.take()
            except asyncio.CancelledError:
                self.queue.put_off(key, 0.0)  # nobody has looked at it
                raise
            if rest := self._rests.left(key):
                self.queue.put_off(key, rest)
                continue
            effort = Effort(self._reconcile(key), self._clock)
            try:
                again = await effort
            except (ApiError, OSError, TimeoutError) as error:
                self._report(self.name, key, error)
                self.queue.retry(key)
            except asyncio.CancelledError:
                self.queue.add(key)  # whoever goes on, here, begins with it
                raise
            except Exception:
                # One object that we cannot handle must not stop work on all others.
                log.exception("%s: a mistake while handling %s; it is tried again", self.name, key)
                self.queue.retry(key)
            else:
                self.queue.forget(key)
                if again is not None:
                    self.queue.add_after(key, again)
            finally:
                self._rests.note(key, effort.seconds)
                self.queue.done(key)
            if is_told_to_end():  # and what it did then failed, or was done
                raise asyncio.CancelledError
