"""Counts what a function does, line by line, so that tests can tell linear work from more without a stopwatch."""

from __future__ import annotations

import gc
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import msgspec

Line = tuple[CodeType, int]
Counts = Counter[Line]

FACTOR = 2.3
SLACK = 12


def lines_run(function: Callable[[], Any]) -> Counts:
    """How often each line of Python ran. Each round of a loop counts, in one line or over several.

    Garbage is not collected meanwhile: finalizers of what others left behind would run, and count, at any line.
    """
    seen: defaultdict[CodeType, list[int]] = defaultdict(list)

    def enter(frame: FrameType, _event: str, _arg: Any) -> Any:
        note = seen[frame.f_code].append
        note(frame.f_lineno)

        def line(frame: FrameType, event: str, _arg: Any) -> Any:
            if event == "line":
                note(frame.f_lineno)
            return line

        return line

    before = sys.gettrace()
    gc.disable()
    sys.settrace(enter)
    try:
        function()
    finally:
        sys.settrace(before)
        gc.enable()
    return Counter({(code, line): count for code, lines in seen.items() for line, count in Counter(lines).items()})


class CountedText(str):
    """A text that notes who compares it: a search through a list compares one by one, in C as well."""

    __slots__ = ()

    counts: Counts = Counter()

    def __eq__(self, other: object) -> bool:
        self._note()
        return str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        self._note()
        return str.__ne__(self, other)

    __hash__ = str.__hash__

    def _note(self) -> None:
        frame = sys._getframe(2)
        self.counts[frame.f_code, frame.f_lineno] += 1


def with_counted_texts(value: Any) -> Any:
    """A copy of an object or a document whose texts count how often they are compared."""
    if isinstance(value, msgspec.Struct):
        return type(value)(**{name: with_counted_texts(getattr(value, name)) for name in value.__struct_fields__})
    if isinstance(value, dict):
        return {CountedText(key): with_counted_texts(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(with_counted_texts, value))
    return CountedText(value) if type(value) is str else value


def comparisons_of(function: Callable[[], Any]) -> Counts:
    """How often each line compared counted texts."""
    CountedText.counts.clear()
    function()
    return CountedText.counts.copy()


def growing_faster(once: Counts, twice: Counts, new: int = SLACK) -> dict[str, tuple[int, int]]:
    """The lines that ran (or compared) more than `FACTOR` times as often with input of twice the size.

    What did not run before, for it is about lists beyond a limit, may run `new` times.
    """
    return {
        f"{code.co_filename.rpartition('/src/')[2]}:{line} ({code.co_name})": (once[code, line], count)
        for (code, line), count in twice.items()
        if count > (FACTOR * once[code, line] + SLACK if once[code, line] else new)
    }
