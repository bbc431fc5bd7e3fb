"""Room for deep recursion.

The language allows 250 levels of nesting. Each takes several Python frames in the parser and in the walks over
the tree, more than Python's default limit has. The limit is only raised while a deep expression is worked on.
"""

from __future__ import annotations

import sys
from _thread import allocate_lock
from collections.abc import Callable
from typing import Any, Final, TypeVar

__all__ = ["DEEP", "TOO_DEEP", "with_deep_stack", "with_room"]

DEEP: Final = 24
"""From this many levels on, an expression is deep."""
TOO_DEEP: Final = "the expression is nested too deeply"
"""What is said of one for which there is not even room then."""

_FRAMES: Final = 12_000
_NESTING: Final = "([{?-+*/%<>=."
"""Signs of which an expression has one for each of its levels, or more."""

Result = TypeVar("Result")


class _DeepStack:
    """The limit is one for all threads: it is raised with the first that needs it, and lowered with the last."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._users = 0
        self._usual = 0

    def __enter__(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._usual = sys.getrecursionlimit()
                sys.setrecursionlimit(max(self._usual, _FRAMES))

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                sys.setrecursionlimit(self._usual)


_deep_stack: Final = _DeepStack()


def with_deep_stack(function: Callable[..., Result], *args: Any) -> Result:
    """Call the function with room for the deepest expressions."""
    with _deep_stack:
        return function(*args)


def with_room(expression: str, function: Callable[..., Result], *args: Any) -> Result:
    """Call a function that parses the expression, with room for deep recursion if that may be deep."""
    nesting = sum(map(expression.count, _NESTING))
    return with_deep_stack(function, *args) if nesting >= DEEP else function(*args)
