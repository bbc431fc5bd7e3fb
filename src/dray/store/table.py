"""The present and the recent past of one resource, in memory. Pure: no I/O, no clock, no event loop."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter

from dray.store.errors import Expired, FutureRevision
from dray.store.log import TYPED_EVENTS, EventLog, Retention, Total
from dray.store.packing import Packer
from dray.store.records import Event, EventType, Key, Listing, Record
from dray.store.shares import Shares
from dray.store.sorted_keys import SortedKeys

_by_key = attrgetter("key")


class Table:
    """The records of one resource by key and in order, with the log that led to them."""

    __slots__ = ("_keys", "_shares", "log", "packer", "records", "resource")

    def __init__(
        self, resource: str, retention: Retention, shares: Shares, horizon: int = 0, total: Total | None = None
    ) -> None:
        self.resource = resource
        self._shares = shares
        self.records: dict[Key, Record] = {}
        self.log = EventLog(retention, horizon, total)
        self.packer = Packer()
        self._keys = SortedKeys()

    def load(self, records: dict[Key, Record], events: Iterable[Event]) -> None:
        """Takes what was read from disk; `events` are those after the horizon, in order."""
        self.records = records
        self._shares.load(records.values())
        self._keys = SortedKeys(records)
        for event in events:
            self.log.append(event)

    def apply(self, event: Event) -> None:
        """Take a durable change into the present and the log. Events come in revision order."""
        record = event.record
        if event.type is EventType.DELETED:
            del self.records[record.key]
            self._keys.remove(record.key)
        else:
            self.records[record.key] = record
            if event.type is EventType.ADDED:
                self._keys.add(record.key)
        self._shares.apply(event)
        self.log.append(event)

    def cold(self) -> Iterator[Record]:
        """All versions, present and past, but for those of the last events. What is written meanwhile is left out."""
        events = self.log.events
        recent = {id(event.record) for event in events[-TYPED_EVENTS:]}
        past = events[:-TYPED_EVENTS]
        for record in list(self.records.values()):
            if id(record) not in recent:
                yield record
        for event in past:
            if event.previous is not None:
                yield event.previous
            if event.type is EventType.DELETED:
                yield event.record

    def page(
        self, revision: int, current: int, namespace: str | None, after: tuple[str, str] | None, limit: int | None
    ) -> Listing:
        """The records at `revision` behind `after` (namespace, name). See `Store.list`."""
        if revision > current:
            raise FutureRevision(revision, current)
        if revision < self.log.horizon:
            raise Expired(self.resource, revision, self.log.horizon)
        if not self.records and revision == current:
            return Listing([], revision, 0)
        start, stop = self._bounds(namespace, after)
        changed = {key: old for key, old in self.log.undo(revision).items() if start <= key < stop}
        if changed:
            records, total = self._rewound(changed, start, stop, limit)
        else:
            records, total = self._slice(start, stop, limit), self._keys.count(start, stop)
        return Listing(records, revision, total - len(records))

    def _slice(self, start: Key, stop: Key, limit: int | None) -> list[Record]:
        records = self.records
        return [records[key] for key in self._keys.slice(start, stop, limit)]

    def _bounds(self, namespace: str | None, after: tuple[str, str] | None) -> tuple[Key, Key]:
        """The half-open range of keys that a listing covers; "\\0" makes the next possible string."""
        if namespace is None:
            start, stop = Key(self.resource, "", ""), Key(self.resource + "\0", "", "")
        else:
            start, stop = Key(self.resource, namespace, ""), Key(self.resource, namespace + "\0", "")
        if after is not None:
            start = max(start, Key(self.resource, after[0], after[1] + "\0"))
        return start, stop

    def _rewound(
        self, changed: dict[Key, Record | None], start: Key, stop: Key, limit: int | None
    ) -> tuple[list[Record], int]:
        """The range with the `changed` keys put back to what they held; and how many that are in all."""
        old = [record for record in changed.values() if record is not None]
        # Every changed key can hide one present record, so that many more make sure that `limit` remain.
        present = self._slice(start, stop, None if limit is None else limit + len(changed))
        records = [record for record in present if record.key not in changed]
        records += old
        records.sort(key=_by_key)
        total = self._keys.count(start, stop) + len(old) - sum(key in self.records for key in changed)
        return (records if limit is None else records[:limit]), total
