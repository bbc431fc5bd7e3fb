"""What is left to somebody who has the time: expressions to compile, and evaluations that take long.

    judge, tracker ──note──▶ Backlog ──next──▶ whoever has the time (a thread) ──▶ Selector.remember ──▶ asked again

Everybody on whose behalf there is work gets a turn, so that one namespace with a thousand selectors does not make the
others wait for all of them. An evaluation that is interrupted goes to the end.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

from dray.api.in_turn import InTurn
from dray.cel.selector import Selector, is_compiled
from dray.cel.view import DeviceView

__all__ = ["Backlog", "Task"]

_MOST: Final = 10_000
"""Tasks. What does not fit is noted again when it is needed again."""


class Task:
    """An expression to compile, or to evaluate on a device."""

    __slots__ = ("expression", "key", "owner", "selector", "tries", "view")

    def __init__(self, owner: str, expression: str, selector: Selector | None, view: DeviceView | None) -> None:
        self.owner = owner
        self.expression = expression
        self.selector = selector
        self.view = view
        self.tries = 0
        looks = None if selector is None or view is None else selector.outcomes.key(view)
        self.key: Hashable = (expression, looks)


class Backlog:
    """Tasks by owner. ``owner`` is on whose behalf is being worked now.

    There is also a limit to what may be done at once without taking long each: with a ``clock``, a turn has an end.
    """

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self.owner = ""
        self.was_cut_short = False
        self._clock = clock
        self._deadline = 0.0
        self._tasks: InTurn[Task] = InTurn()
        self._known: set[Hashable] = set()

    def __len__(self) -> int:
        return len(self._known)

    def begin_turn(self, owner: str, seconds: float) -> None:
        """What is asked for from now on is for the owner, and takes no longer than so many seconds."""
        self.owner = owner
        self.was_cut_short = False
        if self._clock is not None:
            self._deadline = self._clock() + seconds

    def lengthen_turn(self, seconds: float) -> None:
        """The turn takes so much longer from now on, if it would end before."""
        if self._clock is not None:
            self._deadline = max(self._deadline, self._clock() + seconds)

    @property
    def is_time_up(self) -> bool:
        """Whether the turn has come to its end."""
        return self._clock is not None and self._clock() >= self._deadline

    def is_turn_over(self) -> bool:
        """Whether what is not known yet has to wait for the next turn."""
        if self._clock is None or self._clock() < self._deadline:
            return False
        self.end_turn()
        return True

    def end_turn(self) -> None:
        """What is left to do waits for the next turn, which is to come soon."""
        self.was_cut_short = True

    def must_wait_for(self, expression: str) -> bool:
        """Whether compiling the expression is for others to do. If so, it is noted."""
        if is_compiled(expression):
            return False
        self._add(Task(self.owner, expression, None, None))
        return True

    def note(self, selector: Selector, view: DeviceView) -> None:
        """Have the selector evaluated on a device."""
        self._add(Task(self.owner, selector.expression, selector, view))

    def next(self) -> Task | None:
        """The next task, which is still known until it is ``done``."""
        return self._tasks.next()

    def put_back(self, task: Task) -> None:
        """It takes longer than it was given: the tasks that were not tried yet go first."""
        task.tries += 1
        self._tasks.put(task.owner, task)

    def done(self, task: Task) -> None:
        """A task is done with; it may be noted again."""
        self._known.discard(task.key)

    def _add(self, task: Task) -> None:
        if task.key in self._known or len(self._known) >= _MOST:
            return
        self._known.add(task.key)
        self._tasks.put(task.owner, task)
