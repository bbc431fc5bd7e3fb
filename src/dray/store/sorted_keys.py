"""Keys in order, in buckets: inserting moves a few hundred pointers, listing copies slices."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from dray.store.records import Key

BUCKET = 512
"""Keys per bucket after a bulk load; a bucket splits at twice that."""


class SortedKeys:
    """A sorted set of keys with cheap ranges.

    ::

        _last     [ c,        f,        k ]        last key of each bucket, for bisecting
        _buckets  [ a b c ]  [ d e f ]  [ h k ]    never empty
    """

    __slots__ = ("_buckets", "_last")

    def __init__(self, keys: Iterable[Key] = ()) -> None:
        ordered = sorted(keys)
        self._buckets = [ordered[start : start + BUCKET] for start in range(0, len(ordered), BUCKET)]
        self._last = [bucket[-1] for bucket in self._buckets]

    def add(self, key: Key) -> None:
        """Insert a key that is not there."""
        if not self._last:
            self._buckets.append([key])
            self._last.append(key)
            return
        if key > self._last[-1]:  # as names with numbers come
            number, bucket = len(self._buckets) - 1, self._buckets[-1]
            bucket.append(key)
            self._last[-1] = key
        else:
            number, position = self._seek(key)
            bucket = self._buckets[number]
            bucket.insert(position, key)
        if len(bucket) > 2 * BUCKET:
            self._split(number)

    def remove(self, key: Key) -> None:
        """Take the key out; it must be there."""
        number, position = self._seek(key)
        bucket = self._buckets[number]
        del bucket[position]
        if bucket:
            self._last[number] = bucket[-1]
        else:
            del self._buckets[number], self._last[number]

    def slice(self, start: Key, stop: Key, limit: int | None = None) -> list[Key]:
        """The keys with `start <= key < stop`, in order, at most `limit`."""
        number, position = self._seek(start)
        end_number, end_position = self._seek(stop)
        found: list[Key] = []
        while number <= end_number and number < len(self._buckets):
            bucket = self._buckets[number]
            found += bucket[position : end_position if number == end_number else len(bucket)]
            if limit is not None and len(found) >= limit:
                return found[:limit]
            number, position = number + 1, 0
        return found

    def count(self, start: Key, stop: Key) -> int:
        """How many keys there are with `start <= key < stop`."""
        number, position = self._seek(start)
        end_number, end_position = self._seek(stop)
        between = sum(len(bucket) for bucket in self._buckets[number:end_number])
        return between + end_position - position

    def _seek(self, key: Key) -> tuple[int, int]:
        """Where the first key at or after `key` is; one past the last bucket when there is none."""
        number = bisect_left(self._last, key)
        if number == len(self._buckets):
            return number, 0
        return number, bisect_left(self._buckets[number], key)

    def _split(self, number: int) -> None:
        bucket = self._buckets[number]
        upper = bucket[BUCKET:]
        del bucket[BUCKET:]
        self._last[number] = bucket[-1]
        self._buckets.insert(number + 1, upper)
        self._last.insert(number + 1, upper[-1])
