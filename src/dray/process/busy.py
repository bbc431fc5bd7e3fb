"""How long work keeps the event loop busy: what it waits for does not count."""

from __future__ import annotations

import types
from collections.abc import Coroutine, Generator
from time import perf_counter
from typing import Any, TypeVar

R = TypeVar("R")


class Stopwatch:
    """`seconds` that were counted so far."""

    __slots__ = ("seconds",)

    def __init__(self) -> None:
        self.seconds = 0.0


@types.coroutine
def counted(work: Coroutine[Any, Any, R], watch: Stopwatch) -> Generator[Any, Any, R]:
    """The result of some work, with the seconds of each of its steps put on a stopwatch."""
    error: BaseException | None = None
    while True:
        began = perf_counter()
        try:
            waits_for = work.send(None) if error is None else work.throw(error)
        except StopIteration as end:
            result: R = end.value
            return result
        finally:
            watch.seconds += perf_counter() - began
        error = None
        try:
            yield waits_for
        except BaseException as thrown:
            error = thrown
