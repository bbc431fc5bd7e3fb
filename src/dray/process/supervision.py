"""Keeps what runs for ever running: what fails starts again, a little later each time, and the log says so."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

from dray.api.backoff import Backoff
from dray.process.clock import Clock
from dray.process.tasks import is_told_to_end

RESTART: Final = Backoff(first=1.0, longest=60.0)

log = logging.getLogger(__name__)

Run = Callable[[], Coroutine[Any, Any, None]]
"""Runs until cancelled; called again after a failure."""


class Supervisor:
    """Tasks by name."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.problems: dict[str, str] = {}
        """By name, why it does not work now: it has failed, and is going to start again."""

    def start(self, name: str, run: Run) -> None:
        """Runs something from now on."""
        self._tasks[name] = asyncio.get_running_loop().create_task(self._keep_running(name, run), name=name)

    def end(self, name: str) -> None:
        """Stops what runs under a name, if anything does."""
        task = self._tasks.pop(name, None)
        if task is not None:
            task.cancel()
            self.problems.pop(name, None)

    async def stop(self) -> None:
        """Stops everything, last started first. Idempotent."""
        while self._tasks:
            _, task = self._tasks.popitem()
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _keep_running(self, name: str, run: Run) -> None:
        pauses = RESTART.pauses()
        while True:
            began = self._clock.monotonic()
            try:
                await run()
                problem: Exception | None = None
            except Exception as error:
                problem = error
            if is_told_to_end():  # and failed on its way out
                raise asyncio.CancelledError from problem
            if self._clock.monotonic() - began > RESTART.longest:
                pauses.reset()  # it had worked
            pause = pauses.next()
            self.problems[name] = "it ended" if problem is None else f"{type(problem).__name__}: {problem}"
            log.error("%s failed; it starts again in %g s", name, pause, exc_info=problem)
            await self._clock.sleep(pause)
            self.problems.pop(name, None)
