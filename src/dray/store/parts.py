"""What is done to many records in parts, so that no part is too large for a transaction, a question or a turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def in_parts(items: Iterable[T], size_of: Callable[[T], int], most_bytes: int, most: int) -> Iterator[list[T]]:
    """Items in their order, so many in a part and of so many bytes; one that is larger is a part of its own."""
    part, size = list[T](), 0
    for item in items:
        added = size_of(item)
        if part and (len(part) >= most or size + added > most_bytes):
            yield part
            part, size = [], 0
        part.append(item)
        size += added
    if part:
        yield part
