"""Records in key order, in buckets: inserting moves a few hundred pointers, listing copies slices."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from dray.store.records import Key, Record

BUCKET = 512
"""Records per bucket after a bulk load; a bucket splits at twice that."""


class _Bucket:
    """A run of neighbours: `records[i]` belongs to `keys[i]`. Never empty while in the index."""

    __slots__ = ("keys", "records")

    def __init__(self, keys: list[Key], records: list[Record]) -> None:
        self.keys = keys
        self.records = records


class SortedIndex:
    """A sorted map from key to record with cheap ranges.

    ::

        _last     [ c,        f,        k ]        last key of each bucket, for bisecting
        _buckets  [ a b c ]  [ d e f ]  [ h k ]
    """

    __slots__ = ("_buckets", "_last")

    def __init__(self, records: Iterable[Record] = ()) -> None:
        ordered = sorted(records, key=lambda record: record.key)
        self._buckets: list[_Bucket] = []
        for start in range(0, len(ordered), BUCKET):
            run = ordered[start : start + BUCKET]
            self._buckets.append(_Bucket([record.key for record in run], run))
        self._last = [bucket.keys[-1] for bucket in self._buckets]

    def put(self, record: Record) -> None:
        """Insert the record, or replace the one with its key."""
        key = record.key
        number, position = self._seek(key)
        if number == len(self._buckets):
            if not self._buckets:
                self._buckets.append(_Bucket([key], [record]))
                self._last.append(key)
                return
            number -= 1
            position = len(self._buckets[number].keys)
            self._last[number] = key
        bucket = self._buckets[number]
        if position < len(bucket.keys) and bucket.keys[position] == key:
            bucket.records[position] = record
            return
        bucket.keys.insert(position, key)
        bucket.records.insert(position, record)
        if len(bucket.keys) > 2 * BUCKET:
            self._split(number)

    def remove(self, key: Key) -> None:
        """Take the key out; it must be there."""
        number, position = self._seek(key)
        bucket = self._buckets[number]
        del bucket.keys[position], bucket.records[position]
        if bucket.keys:
            self._last[number] = bucket.keys[-1]
        else:
            del self._buckets[number], self._last[number]

    def slice(self, start: Key, stop: Key, limit: int | None = None) -> list[Record]:
        """The records with `start <= key < stop`, in order, at most `limit`."""
        number, position = self._seek(start)
        end_number, end_position = self._seek(stop)
        found: list[Record] = []
        while number <= end_number and number < len(self._buckets):
            records = self._buckets[number].records
            found += records[position : end_position if number == end_number else len(records)]
            if limit is not None and len(found) >= limit:
                return found[:limit]
            number, position = number + 1, 0
        return found

    def count(self, start: Key, stop: Key) -> int:
        """How many records have `start <= key < stop`."""
        number, position = self._seek(start)
        end_number, end_position = self._seek(stop)
        between = sum(len(bucket.keys) for bucket in self._buckets[number:end_number])
        return between + end_position - position

    def _seek(self, key: Key) -> tuple[int, int]:
        """Where the first record at or after `key` is; one past the last bucket when there is none."""
        number = bisect_left(self._last, key)
        if number == len(self._buckets):
            return number, 0
        return number, bisect_left(self._buckets[number].keys, key)

    def _split(self, number: int) -> None:
        bucket = self._buckets[number]
        upper = _Bucket(bucket.keys[BUCKET:], bucket.records[BUCKET:])
        del bucket.keys[BUCKET:], bucket.records[BUCKET:]
        self._last[number] = bucket.keys[-1]
        self._buckets.insert(number + 1, upper)
        self._last.insert(number + 1, upper.keys[-1])
