"""What is remembered, bounded in number or in size: strangers may choose what that is."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """Values by key, the most recently used so many, of so much size together; the newest is always kept."""

    __slots__ = ("_entries", "_found", "_most", "size")

    def __init__(self, entries: int, most: int) -> None:
        self._entries = entries
        self._most = most
        self._found: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self.size = 0
        """Of all that is remembered, as `put` was told."""

    def __len__(self) -> int:
        return len(self._found)

    def __contains__(self, key: K) -> bool:
        return key in self._found

    def get(self, key: K) -> V | None:
        """What is remembered, which is as good as new then."""
        found = self._found.get(key)
        if found is None:
            return None
        self._found.move_to_end(key)
        return found[0]

    def put(self, key: K, value: V, size: int) -> list[K]:
        """Remembers a value. Others are forgotten for it, if need be: those of these keys."""
        _, before = self._found.pop(key, (None, 0))
        self._found[key] = (value, size)
        self.size += size - before
        forgotten: list[K] = []
        while len(self._found) > self._entries or (self.size > self._most and len(self._found) > 1):
            oldest, (_, gone) = self._found.popitem(last=False)
            self.size -= gone
            forgotten.append(oldest)
        return forgotten

    def drop(self, key: K) -> None:
        """Forgets a value, if there is one."""
        _, gone = self._found.pop(key, (None, 0))
        self.size -= gone


class Bounded(dict[K, V]):
    """So many values by key at most. For one more all are forgotten, which costs less than to know the oldest."""

    __slots__ = ("_most",)

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def keep(self, key: K, value: V) -> V:
        """Remembers a value, and returns it."""
        if len(self) >= self._most:
            self.clear()
        self[key] = value
        return value


class Newest(OrderedDict[K, V]):
    """The newest so many values by key. For one more the oldest is forgotten."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def keep(self, key: K, value: V) -> V:
        """Remembers a value as the newest, and returns it."""
        self[key] = value
        self.move_to_end(key)
        if len(self) > self._most:
            self.popitem(last=False)
        return value
