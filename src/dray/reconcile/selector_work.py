"""Selectors that take long, evaluated in a thread beside the event loop.

    decision ──▶ cel.Backlog ──▶ SelectorWork (a thread, interruptible) ──▶ Selector.outcomes ──▶ changed() ──▶ decision

Kubernetes limits what an expression may cost, and within the limit it may take minutes. Here each selector has so many
seconds of processor time for all devices together; what is not known by then counts as timed out, and is tried again
some minutes later.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Final

from dray import cel
from dray.cel.outcomes import Outcome
from dray.process.clock import Clock
from dray.reconcile.thread_work import ThreadWork

FIRST_TRY_SECONDS: Final = 0.1
"""How long an evaluation may take before those go first that were not tried yet."""
AGAIN_SECONDS: Final = 300.0
"""After which evaluations that ran out of time are tried again."""
STEPS: Final = 2_000
"""How much is done between two rests: about a millisecond."""


class _Stopped(Exception):
    """The work is not wanted any more."""


class SelectorWork(ThreadWork[cel.Task]):
    """Does the work of a backlog."""

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
        super().__init__(backlog, clock, changed, look_again_seconds=AGAIN_SECONDS / 10, processor_time=processor_time)
        self._backlog = backlog
        self._seconds = seconds
        self._spent: dict[cel.Selector, float] = {}
        self._given_up: deque[tuple[float, cel.Selector]] = deque()

    def look(self) -> None:
        """To be called after each turn: there may be work, or something that a turn was too short for."""
        if self._backlog.was_cut_short:
            self._backlog.was_cut_short = False
            asyncio.get_running_loop().call_soon(self._changed)
        super().look()

    async def _work_on(self, piece: cel.Task, pool: Executor) -> None:
        selector, view = piece.selector, piece.view
        spent_before = 0.0 if selector is None else self._spent.get(selector, 0.0)
        left = None if self._seconds is None else self._seconds - spent_before
        seconds = left if piece.tries else FIRST_TRY_SECONDS if left is None else min(left, FIRST_TRY_SECONDS)
        done = asyncio.get_running_loop().run_in_executor(pool, self._evaluate, piece, seconds)
        outcome, spent = await done
        if selector is not None and view is not None:
            self._spent[selector] = spent_before + spent
            if isinstance(outcome, cel.OutOfTime) and (left is None or left - spent > 0):
                self._backlog.put_back(piece)
                return
            if isinstance(outcome, cel.OutOfTime) and not any(selector is known for _, known in self._given_up):
                self._given_up.append((self._clock.monotonic() + AGAIN_SECONDS, selector))
            if outcome is not None:
                selector.outcomes.put(view, outcome)
        self._backlog.done(piece)
        if not len(self._backlog):
            self._spent = {selector: self._spent[selector] for _, selector in self._given_up}
        self._tell()

    def _forget_given_up(self) -> bool:
        now = self._clock.monotonic()
        is_due = False
        while self._given_up and self._given_up[0][0] <= now:
            selector = self._given_up.popleft()[1]
            self._spent.pop(selector, None)
            selector.outcomes.forget_given_up()
            is_due = True
        return is_due

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
            worked_since = self._rest(worked_since)
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
