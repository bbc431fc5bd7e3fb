"""How long the turns of an event loop are, in processor time of its own thread: other programs do not count.

Nor do collections of garbage: they go over all that earlier tests left in this process, and come at any moment. Nor
does what others take away by sharing a core or its caches: a long turn is told as the processor would do it at its
best, which is judged by how long a fixed piece of work takes right afterwards.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections import defaultdict
from typing import Any

_collected: defaultdict[int, float] = defaultdict(float)
"""Processor time that each thread has spent on garbage."""
_began: dict[int, float] = {}
_WORTH_ANOTHER_LOOK = 0.005


def _count_collection(phase: str, _info: Any) -> None:
    thread = threading.get_ident()
    if phase == "start":
        _began[thread] = time.thread_time()
    elif thread in _began:
        _collected[thread] += time.thread_time() - _began.pop(thread)


gc.callbacks.append(_count_collection)


def _worked() -> float:
    """Processor time of this thread, without collections."""
    return time.thread_time() - _collected[threading.get_ident()]


def _pace() -> float:
    """How long a fixed piece of work takes now."""
    began = time.thread_time()
    parts = {str(number): [number] for number in range(1500)}
    sum(len(parts[name]) for name in sorted(parts))
    return time.thread_time() - began


_best_pace = min(_pace() for _ in range(30))


def _at_best(seconds: float) -> float:
    """How long that would have taken if nobody else had used the processor."""
    global _best_pace
    paces = sorted(_pace() for _ in range(5))
    _best_pace = min(_best_pace, paces[0])
    return seconds * _best_pace / paces[2]


class LoopTurns:
    """Measures every turn of a loop of asyncio from now on, and what is left of the one under way."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.count = 0
        self._loop = loop
        self._longest = 0.0
        self._since = _worked() if self._is_on_the_loop() else None
        """Since when the turn that is under way is measured."""
        run_once = loop._run_once  # type: ignore[attr-defined]

        def measured(*arguments: Any) -> None:
            self._note_turn()
            self._since = _worked()
            run_once(*arguments)
            self._note_turn()
            self._since = None
            self.count += 1

        loop._run_once = measured  # type: ignore[attr-defined]

    @property
    def longest(self) -> float:
        """In seconds of processor time; the turn in which that is asked counts, too."""
        if self._is_on_the_loop():
            self._note_turn()
            self._since = _worked()
        return self._longest

    def reset(self) -> None:
        """Forget what was before."""
        self._longest = 0.0
        self.count = 0
        if self._is_on_the_loop():
            self._since = _worked()

    def _is_on_the_loop(self) -> bool:
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:
            return False

    def _note_turn(self) -> None:
        spent = 0.0 if self._since is None else _worked() - self._since
        if spent > self._longest and spent > _WORTH_ANOTHER_LOOK:
            spent = _at_best(spent)
        self._longest = max(self._longest, spent)
