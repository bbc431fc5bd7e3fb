"""Room for deep recursion.

The language allows 250 levels of nesting. Each takes several Python frames in the parser and in the walks over
the tree, more than Python's default limit has. The limit is only raised while a deep expression is worked on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final, TypeVar

__all__ = ["DEEP", "with_deep_stack"]

DEEP: Final = 24
"""From this many levels on, an expression is deep."""

_FRAMES: Final = 12_000

Result = TypeVar("Result")


def with_deep_stack(function: Callable[..., Result], *args: Any) -> Result:
    """Call the function with room for the deepest expressions."""
    limit = sys.getrecursionlimit()
    if limit >= _FRAMES:
        return function(*args)
    sys.setrecursionlimit(_FRAMES)
    try:
        return function(*args)
    finally:
        sys.setrecursionlimit(limit)
