"""Keeps components running: one that fails by mistake is made anew, and the log says so."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from dray.reconcile import Clock

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0

log = logging.getLogger(__name__)

Start = Callable[[], Coroutine[Any, Any, None]]
"""Makes a component and runs it until cancelled; called again after a failure."""


class Supervisor:
    """Tasks by name."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.problems: dict[str, str] = {}
        """By component, why it does not work now."""

    def start(self, name: str, start: Start) -> None:
        """Runs a component from now on."""
        self._tasks[name] = asyncio.get_running_loop().create_task(self._keep_running(name, start), name=name)

    async def stop(self) -> None:
        """Stops everything, last started first."""
        while self._tasks:
            _, task = self._tasks.popitem()
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _keep_running(self, name: str, start: Start) -> None:
        pause = FIRST_PAUSE
        while True:
            began = self._clock.monotonic()
            try:
                await start()
                self.problems[name] = "it ended"
            except Exception as error:
                self.problems[name] = f"{type(error).__name__}: {error}"
                log.exception("%s failed; it starts again in %g s", name, pause)
            if self._clock.monotonic() - began > LONGEST_PAUSE:
                pause = FIRST_PAUSE
            await self._clock.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)
            del self.problems[name]
