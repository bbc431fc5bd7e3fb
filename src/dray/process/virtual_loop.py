"""An event loop on virtual time: it never waits, and the same program always runs in the same order.

When nothing is left to run now, time jumps to the next timer, or goes there at a pace. There is no I/O and there are no
threads: what would be done in one is done at once. Whoever still waits when there is no timer either would wait for
ever, which is an error.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from dray.process.clock import VirtualClock

T = TypeVar("T")

START = 1_750_000_000.0


MOST_TURNS = 20_000
"""So often the loop may turn without waiting before somebody is taken to be going round in circles."""

TURN_SECONDS = 1e-6
"""What a turn takes: whoever waits for the next moment of the clock must not wait for ever."""


class Stalled(RuntimeError):
    """Everybody waits for somebody else, or somebody never waits."""


class _Selector:
    """Stands where a loop asks the system for I/O: lets time pass instead."""

    def __init__(self, pace: float | None, most_turns: int) -> None:
        self.now = 0.0
        self._pace = pace
        self._most_turns = most_turns
        self._turns = 0

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise Stalled("nothing runs, and no timer is set")
        self._turns = 0 if timeout else self._turns + 1
        if self._turns > self._most_turns:
            raise Stalled(f"somebody never waits, at {self.now:.3f}s")
        if self._pace and timeout:
            time.sleep(timeout / self._pace)
        self.now += max(timeout, TURN_SECONDS)
        return []

    def close(self) -> None:
        """Nothing to release."""


class _Task(asyncio.Task[Any]):
    """A task whose hash is its number: sets of tasks, as task groups have them, are in one order in every process."""

    number = 0

    def __hash__(self) -> int:
        return self.number


class VirtualLoop(asyncio.BaseEventLoop):
    """The loop. `problems` collects what nobody caught. With a `pace`, so many seconds pass in one of the system's."""

    def __init__(self, pace: float | None = None, most_turns: int = MOST_TURNS) -> None:
        super().__init__()
        self._tasks = 0
        self.set_task_factory(self._make_task)
        self._selector = _Selector(pace, most_turns)
        self.problems: list[str] = []
        self.set_exception_handler(self._note_problem)

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._selector.now

    def _make_task(self, _loop: asyncio.AbstractEventLoop, work: Any, **details: Any) -> _Task:
        task = _Task.__new__(_Task)
        self._tasks += 1
        task.number = self._tasks
        task.__init__(work, loop=self, **details)  # type: ignore[misc]  # it is in a set before it returns
        return task

    def run_in_executor(self, _executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]  # at once
        """What a function gives, which runs here and now."""
        done: asyncio.Future[Any] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done

    def _process_events(self, event_list: list[Any]) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """Nobody sleeps, so nobody is to be woken."""

    def _note_problem(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self.problems.append(f"{context.get('message')}: {error!r}")


class LoopClock(VirtualClock):
    """The loop's time as a clock; it moves by itself, and `jump` sets the wall clock."""

    def __init__(self, start: float = START) -> None:
        """`start` is what the wall clock shows when the loop begins, in seconds since 1970."""
        super().__init__(start)
        self._loop = asyncio.get_running_loop()
        self._jumps: list[tuple[float, float]] = [(0.0, 0.0)]

    def now(self) -> float:
        """Virtual seconds since 1970."""
        return self._now + self._loop.time() + self._jumped

    def monotonic(self) -> float:
        """Virtual seconds that never jump."""
        return self._loop.time()

    def jump(self, seconds: float) -> None:
        """Sets the wall clock forward or back; nobody wakes."""
        super().jump(seconds)
        self._jumps.append((self.monotonic(), self._jumped))

    def latest(self, seconds: float) -> float:
        """The latest time that the wall clock has shown within so many last seconds."""
        start = self.monotonic() - seconds
        ends = [*(moment for moment, _ in self._jumps[1:]), self.monotonic()]
        shown = [self._now + end + jumped for end, (_, jumped) in zip(ends, self._jumps, strict=True) if end >= start]
        return max(shown)

    async def sleep(self, seconds: float) -> None:
        """Returns after so many virtual seconds."""
        await asyncio.sleep(max(seconds, 0.0))

    async def advance(self, seconds: float, turns: int = 0) -> None:  # noqa: ARG002 - as a clock that tests move
        """Lets time pass; others run meanwhile, as long as they need."""
        await asyncio.sleep(seconds)


def run(main: Coroutine[Any, Any, T], pace: float | None = None, most_turns: int = MOST_TURNS) -> T:
    """Runs a program to its end. Raises Stalled, and AssertionError if a task failed and nobody noticed.

    The garbage collector does not run meanwhile: what it finalizes, and when, depends on everything that ran before.
    """
    loop = VirtualLoop(pace, most_turns)
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        asyncio.set_event_loop(loop)
        result = loop.run_until_complete(main)
        _cancel_all(loop)
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        asyncio.set_event_loop(None)
        loop.close()
        if was_enabled:
            gc.enable()
    if loop.problems:
        raise AssertionError(loop.problems)
    return result


def _cancel_all(loop: VirtualLoop) -> None:
    left = sorted(asyncio.all_tasks(loop), key=lambda task: task.get_name())
    for task in left:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
