"""Remembering what pure functions make of texts, bounded in bytes: texts come from strangers.

`functools.lru_cache` bounds the number of entries, and a text may have megabytes. What is long is rarely asked for
twice: it is worked out each time.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, Final, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

LONGEST = 512
LONG = 16 * 1024

_UNKNOWN: Final = object()


def remember_texts(
    entries: int,
    longest: int = LONGEST,
    *,
    long_entries: int = 0,
    keeps: Callable[[Any], bool] = lambda _result: True,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator for pure functions with positional arguments: texts, bytes, truth values, or tuples of them.

    Results for arguments of up to `longest` letters together are remembered, the newest so many: so it holds at most
    `entries` times `longest` letters, and what the function makes of them. Where longer ones are asked for again and
    again, so many of those of up to `LONG` letters are remembered, too. Where a result may be large whatever the text,
    `keeps` says whether this one is remembered.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        is_single = len(signature(function).parameters) == 1
        work_out: Callable[[Any], R] = function if is_single else lambda texts: function(*texts)  # type: ignore[call-arg]  # as `P` has them
        long = _Memory(work_out, long_entries, LONG, keeps) if long_entries else None
        memory = _Memory(long.__getitem__ if long is not None else work_out, entries, longest, keeps)
        if is_single:
            return memory.__getitem__  # type: ignore[return-value]  # what is known is found without Python

        def look_up(*texts: Any) -> Any:
            return memory[texts]

        return look_up  # type: ignore[return-value]  # is called like the function

    return decorate


class _Memory(dict[Any, Any]):
    """What is known by argument. Two generations: what is asked for again in time outlives the older one."""

    __slots__ = ("_function", "_keeps", "_longest", "_most", "_older")

    def __init__(
        self, function: Callable[[Any], Any], entries: int, longest: int, keeps: Callable[[Any], bool]
    ) -> None:
        super().__init__()
        self._keeps = keeps
        self._function = function
        self._most = max(1, entries // 2)
        self._longest = longest
        self._older: dict[Any, Any] = {}

    def __missing__(self, argument: Any) -> Any:
        result = self._older.get(argument, _UNKNOWN)
        if result is _UNKNOWN:
            result = self._function(argument)
            length = len(argument) if argument.__class__ is str else text_length(argument)
            if length > self._longest or not self._keeps(result):
                return result
        if len(self) >= self._most:
            self._older = self.copy()
            self.clear()
        self[argument] = result
        return result


def text_length(*texts: object) -> int:
    """How many letters or bytes there are in texts, and in tuples of them."""
    total = 0
    for text in texts:
        if isinstance(text, str | bytes):
            total += len(text)
        elif isinstance(text, tuple):
            total += text_length(*text)
    return total
