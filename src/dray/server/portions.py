"""Long answers are put together a portion at a time: a client that does not read has the server hold no more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeVar

T = TypeVar("T")

EVENTS: Final = 500
BYTES: Final = 256 * 1024


def portions(found: list[T], size_of: Callable[[T], int]) -> Iterator[list[T]]:
    """All, in parts of no more than `EVENTS` and `BYTES`, but with one at least."""
    part: list[T] = []
    total = 0
    for one in found:
        size = size_of(one)
        if part and (total + size > BYTES or len(part) == EVENTS):
            yield part
            part, total = [], 0
        part.append(one)
        total += size
    if part:
        yield part
