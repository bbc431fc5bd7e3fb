"""Tasks that belong together: they run side by side and end together."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Sequence
from typing import Any


async def run_together(*work: Coroutine[Any, Any, None]) -> None:
    """Runs everything until cancelled, or until one part fails, which ends the others, too. Raises what it raised."""
    tasks = [asyncio.get_running_loop().create_task(one) for one in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        await end(tasks)


async def end(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Cancels all tasks, then waits for each. Raises what a task failed with."""
    for task in tasks:
        task.cancel()
    for task in tasks:
        with contextlib.suppress(asyncio.CancelledError):
            await task
