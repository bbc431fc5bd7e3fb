"""How far an eviction is, for people: a bar on a terminal, else a line whenever it got further."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Final

from dray.cli import output
from dray.prose.wording import count

if TYPE_CHECKING:
    from rich.progress import Progress

    from dray.controllers.eviction.progress import Standing

LINE_SECONDS: Final = 1.0
"""In a pipe, at most one line in this time."""
RATE_SECONDS: Final = 5.0


class Display:
    """Use as a context manager; `show` as often as there is news. Writes to standard error if `quiet`."""

    def __init__(self, *, quiet: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._file = sys.stderr if quiet else sys.stdout
        self._clock = clock
        self._bar: Progress | None = None
        self._past: deque[tuple[float, int]] = deque()
        self._told = ""
        self._hold = ""
        self._is_forced = False
        self._told_at = float("-inf")

    def __enter__(self) -> Display:
        if self._file.isatty():
            from rich.progress import BarColumn, Progress, TextColumn

            columns = (TextColumn("Evicting"), BarColumn(), TextColumn("{task.fields[told]}"))
            self._bar = Progress(*columns, console=output.console_on(self._file), transient=True)
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, standing: Standing) -> None:
        """News."""
        if standing.hold != self._hold:
            self._hold = standing.hold
            print(f"dray: {standing.hold or 'pods leave again'}", file=sys.stderr, flush=True)
        if standing.forced and not self._is_forced:
            self._is_forced = True
            said = "the deadline is over: who is left is deleted, whatever budgets say"
            print(f"dray: {said}", file=sys.stderr, flush=True)
        told = self._tell(standing)
        if self._bar is not None:
            if not self._bar.tasks:
                self._bar.add_task("", total=None, told="")
            task = self._bar.tasks[0].id
            self._bar.update(task, total=standing.total, completed=standing.evicted, told=told)
            return
        now = self._clock()
        counts = f"{standing.evicted} of {count(standing.total, 'pod')} evicted{self._waiting(standing)}"
        is_due = now - self._told_at >= LINE_SECONDS or standing.is_evicted
        if counts != self._told and is_due:
            self._told, self._told_at = counts, now
            print(counts, file=self._file, flush=True)

    def _tell(self, standing: Standing) -> str:
        """`412/700 pods · 10.0/s · 29 s left · 3 waiting for a disruption budget`."""
        now = self._clock()
        self._past.append((now, standing.evicted))
        while len(self._past) > 2 and now - self._past[0][0] > RATE_SECONDS:
            self._past.popleft()
        began, before = self._past[0]
        rate = (standing.evicted - before) / (now - began) if now > began else 0.0
        speed = f" · {rate:.1f}/s · {(standing.total - standing.evicted) / rate:.0f} s left" if rate > 0 else ""
        return f"{standing.evicted}/{standing.total} pods{speed}{self._waiting(standing)}"

    @staticmethod
    def _waiting(standing: Standing) -> str:
        budget = f" · {standing.blocked} waiting for a disruption budget" if standing.blocked else ""
        budget += f" · {standing.refused} refused by the server" if standing.refused else ""
        budget += f" · {standing.replacing} waiting for replacements" if standing.replacing else ""
        return budget + (f" · {standing.put_off} put off by the eviction policy" if standing.put_off else "")
