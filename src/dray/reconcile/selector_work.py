"""Selectors that take long, evaluated in a thread beside the event loop.

    decision ──▶ cel.Backlog ──▶ SelectorWork (a thread, interruptible) ──▶ Selector.outcomes ──▶ changed() ──▶ decision

Kubernetes limits what an expression may cost, and within the limit it may take minutes. Here each selector has so many
seconds of processor time for all devices together; what is not known by then counts as timed out, and is tried again
some minutes later. The thread shares the interpreter with the loop: it works a millisecond at a time and rests as long,
so that whoever needs the loop gets it at once.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from dray import cel
from dray.cel.outcomes import Outcome
from dray.process.clock import Clock

FIRST_TRY_SECONDS: Final = 0.1
"""How long an evaluation may take before those go first that were not tried yet."""
AGAIN_SECONDS: Final = 300.0
"""After which evaluations that ran out of time are tried again."""
PROGRESS_SECONDS: Final = 0.2
"""How often at most it is told that there are new results while there is more to do."""
STEPS: Final = 2_000
"""How much is done between two rests: about a millisecond."""


class _Stopped(Exception):
    """The work is not wanted any more."""


class SelectorWork:
    """Does the work of a backlog. `changed` is called on the loop when there are new results."""

    def __init__(
        self,
        backlog: cel.Backlog,
        clock: Clock,
        changed: Callable[[], None],
        *,
        seconds: float | None = None,
        processor_time: Callable[[], float] = time.thread_time,
    ) -> None:
        """`seconds` is what each selector may take for all devices together; None for no limit."""
        self._backlog = backlog
        self._clock = clock
        self._changed = changed
        self._seconds = seconds
        self._processor_time = processor_time
        self._wake = asyncio.Event()
        self._is_stopped = False
        self._spent: dict[cel.Selector, float] = {}
        self._given_up: deque[tuple[float, cel.Selector]] = deque()
        self._told_at = 0.0

    def look(self) -> None:
        """To be called after each turn: there may be work, or something that a turn was too short for."""
        if self._backlog.was_cut_short:
            self._backlog.was_cut_short = False
            asyncio.get_running_loop().call_soon(self._changed)
        if len(self._backlog):
            self._wake.set()

    async def run(self) -> None:
        """Works until cancelled."""
        pool: ThreadPoolExecutor | None = None
        again = asyncio.create_task(self._forget_given_up())
        try:
            while True:
                await self._wake.wait()
                if pool is None:
                    pool = ThreadPoolExecutor(1, thread_name_prefix="selectors")
                task = self._backlog.next()
                if task is None:
                    self._wake.clear()
                    continue
                await self._work_on(task, pool)
        finally:
            self._is_stopped = True
            again.cancel()
            if pool is not None:
                pool.shutdown(wait=False, cancel_futures=True)

    async def _work_on(self, task: cel.Task, pool: ThreadPoolExecutor) -> None:
        selector, view = task.selector, task.view
        spent_before = 0.0 if selector is None else self._spent.get(selector, 0.0)
        left = None if self._seconds is None else self._seconds - spent_before
        seconds = left if task.tries else FIRST_TRY_SECONDS if left is None else min(left, FIRST_TRY_SECONDS)
        done = asyncio.get_running_loop().run_in_executor(pool, self._evaluate, task, seconds)
        outcome, spent = await done
        if selector is not None and view is not None:
            self._spent[selector] = spent_before + spent
            if isinstance(outcome, cel.OutOfTime) and (left is None or left - spent > 0):
                self._backlog.put_back(task)
                return
            if isinstance(outcome, cel.OutOfTime) and not any(selector is known for _, known in self._given_up):
                self._given_up.append((self._clock.monotonic() + AGAIN_SECONDS, selector))
            if outcome is not None:
                selector.outcomes.put(view, outcome)
        self._backlog.done(task)
        self._tell()

    def _tell(self) -> None:
        now = self._clock.monotonic()
        if not len(self._backlog):
            self._spent = {selector: self._spent[selector] for _, selector in self._given_up}
        elif now - self._told_at < PROGRESS_SECONDS:
            return
        self._told_at = now
        self._changed()

    async def _forget_given_up(self) -> None:
        """Lets what ran out of time be tried again when it is time for that."""
        while True:
            await self._clock.sleep(AGAIN_SECONDS / 10)
            now = self._clock.monotonic()
            is_due = False
            while self._given_up and self._given_up[0][0] <= now:
                selector = self._given_up.popleft()[1]
                self._spent.pop(selector, None)
                selector.outcomes.forget_given_up()
                is_due = True
            if is_due:
                self._changed()

    # In the thread

    def _evaluate(self, task: cel.Task, seconds: float | None) -> tuple[Outcome | None, float]:
        """What came out, and how much processor time it took."""
        began = worked_since = self._processor_time()

        def more() -> int:
            nonlocal worked_since
            now = self._processor_time()
            if self._is_stopped:
                raise _Stopped
            if seconds is not None and now - began > seconds:
                raise cel.OutOfTime
            time.sleep(min(now - worked_since, 0.01))  # somebody else's turn
            worked_since = self._processor_time()
            return STEPS

        outcome: Outcome | None = None
        try:
            if task.selector is None or task.view is None:
                cel.compile(task.expression, mode="stored")
            elif seconds is None or seconds > 0:
                outcome = task.selector.work_out(task.view, more)
            else:
                outcome = cel.OutOfTime()
        except cel.OutOfTime as error:
            outcome = error.with_traceback(None)
        except (cel.CompileError, _Stopped):
            pass  # what is wrong with an expression is remembered as a selector is
        return outcome, self._processor_time() - began
