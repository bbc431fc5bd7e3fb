"""Tasks that belong together, and work that leaves the loop to others now and then."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


def is_told_to_end() -> bool:
    """Whether this task was cancelled, also if a failure on the way out hides it. Loops look before they go on."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def with_turns(items: Iterable[T], count: int) -> AsyncIterator[T]:
    """Each of them, with a turn of the loop for others after so many."""
    for number, one in enumerate(items, 1):
        yield one
        if number % count == 0:
            await asyncio.sleep(0)


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


async def cancel_all(tasks: Iterable[asyncio.Future[Any]]) -> None:
    """Cancels all tasks, then waits until they have ended, however they do."""
    ending = tuple(tasks)
    for task in ending:
        task.cancel()
    await asyncio.gather(*ending, return_exceptions=True)


async def run_until_first(*work: Awaitable[None]) -> None:
    """Runs everything until one part is done, which ends the others, too. Raises what it raised."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        await cancel_all(tasks)
