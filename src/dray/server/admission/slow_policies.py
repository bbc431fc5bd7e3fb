"""Evaluations that take longer than others can wait for: they go on beside the event loop, one after the other.

Kubernetes bounds what an expression may cost, and that says little about time. Here a policy that has not made up its
mind after some seconds has failed, which its failure policy decides about.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from dray import cel

__all__ = ["SlowPolicies", "TookTooLong", "within_time"]

MOST_SECONDS: Final = 5.0
MOST_WAITING: Final = 64
STEPS: Final = 2_000
"""How much is done before the time is looked at."""

T = TypeVar("T")


class TookTooLong(Exception):
    """An evaluation was given up."""


class SlowPolicies:
    """One thread for all; evaluations are pure Python, so that more threads would do no more."""

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None
        self._waiting = 0

    async def run(self, evaluate: Callable[[cel.Budget], T]) -> T:
        """What an evaluation says, with all the cost that Kubernetes allows. Raises TookTooLong."""
        if self._waiting >= MOST_WAITING:
            raise TookTooLong("too many slow expressions are being evaluated")
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "admission")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, within_time, evaluate)
        finally:
            self._waiting -= 1

    async def compile(self, compile: Callable[[], None]) -> None:
        """Compiles expressions."""
        await self.run(lambda _: compile())

    def close(self) -> None:
        """Lets go of the thread; what runs ends by itself, in some seconds."""
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)
            self._thread = None


def within_time(evaluate: Callable[[cel.Budget], T]) -> T:
    """What an evaluation says, in a thread. Raises TookTooLong."""
    deadline = time.monotonic() + MOST_SECONDS

    def more() -> int:
        if time.monotonic() >= deadline:
            raise cel.OutOfTime
        return STEPS

    try:
        return evaluate(cel.Budget(more))
    except cel.OutOfTime:
        raise TookTooLong(f"its expressions took more than {MOST_SECONDS:g} seconds") from None
