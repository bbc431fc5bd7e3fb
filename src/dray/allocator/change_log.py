"""What happened lately, for those who catch up when they are asked: whatever happens costs one entry, however many
follow it."""

from __future__ import annotations

from typing import Final, Generic, TypeVar

T = TypeVar("T")

KEPT: Final = 10_000
"""So many entries are there at least, if there were; who is further behind begins anew."""


class ChangeLog(Generic[T]):
    """Entries by position, the oldest of which are forgotten."""

    __slots__ = ("_entries", "_forgotten")

    def __init__(self) -> None:
        self._entries: list[T] = []
        self._forgotten = 0

    @property
    def end(self) -> int:
        """The position of whatever happens next."""
        return self._forgotten + len(self._entries)

    def append(self, entry: T) -> None:
        """Something happened."""
        if len(self._entries) >= 2 * KEPT:
            del self._entries[:KEPT]
            self._forgotten += KEPT
        self._entries.append(entry)

    def reaches(self, position: int) -> bool:
        """Whether everything from there on is known."""
        return position >= self._forgotten

    def read(self, position: int, most: int | None = None) -> list[T]:
        """The entries from there on, up to so many."""
        start = position - self._forgotten
        return self._entries[start:] if most is None else self._entries[start : start + most]
