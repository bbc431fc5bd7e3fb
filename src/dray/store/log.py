"""The recent past of one resource: a list of events that all watchers share, each with its own position."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from operator import attrgetter

import msgspec

from dray.store.records import Decode, Event, EventType, Key, Record

AT_ONCE = 4096
"""So many events are dropped at a time, however many are due: nobody should have to wait for all of them."""
SMALL = 1024
"""A log up to this length is pruned at once, a longer one in steps."""

TYPED_EVENTS = 1024
"""So many of the last events keep the typed objects of the versions that they replaced, for watchers that follow."""

EVENT_BYTES = 256
"""About what an event takes beside the data."""

_revision_of = attrgetter("record.revision")


class Retention(msgspec.Struct, frozen=True):
    """How much past each resource keeps; the first limit reached decides.

    `max_bytes` counts the data that only the history still holds (versions that were replaced or deleted).
    `max_total_bytes` is for all resources together, and counts `EVENT_BYTES` for each event, too.
    """

    max_events: int = 50_000
    max_bytes: int = 32 * 1024 * 1024
    max_age: float = 300.0
    max_total_bytes: int = 128 * 1024 * 1024


class Total:
    """What the logs of all resources hold together, in bytes."""

    __slots__ = ("bytes",)

    def __init__(self) -> None:
        self.bytes = 0


class EventLog:
    """Events in revision order, with absolute positions that survive dropping the oldest.

    ::

        position        0 … 6   7    8    9    10
        events          dropped [e7,  e8,  e9]  ^ end
                                ^ first
        horizon = revision of e6: a watch may start at that revision or later, without a gap
    """

    __slots__ = ("_bytes", "_due", "_light", "_marks", "_retention", "_total", "events", "first", "held", "horizon")

    def __init__(self, retention: Retention, horizon: int = 0, total: Total | None = None) -> None:
        """`total` is what this log and others hold together."""
        self.held = 0
        self._total = Total() if total is None else total
        self.events: list[Event] = []
        self.first = 0
        self.horizon = horizon
        self._retention = retention
        self._bytes = 0
        self._due = 0
        self._light = 0
        # (time, end at that time), at most one per hundredth of max_age: ages without a clock reading per event.
        self._marks: deque[tuple[float, int]] = deque()

    @property
    def end(self) -> int:
        """The position that the next event will get."""
        return self.first + len(self.events)

    def append(self, event: Event) -> None:
        self.events.append(event)
        held = 0 if event.previous is None else _held_bytes(event)
        self._bytes += held
        self.held += held + EVENT_BYTES
        self._total.bytes += held + EVENT_BYTES

    def lighten(self, decode: Decode) -> None:
        """Let go of typed objects that only the history still holds, but for those of the last events."""
        begin = max(self._light, self.first)
        until = min(self.end - TYPED_EVENTS, begin + AT_ONCE)
        for event in self.events[begin - self.first : max(until - self.first, 0)]:
            if event.previous is not None:
                event.previous.lighten(decode)
            if event.type is EventType.DELETED:
                event.record.lighten(decode)
        self._light = max(begin, until)

    def position_after(self, revision: int) -> int:
        """The position of the first event later than `revision`."""
        return self.first + bisect_right(self.events, revision, key=_revision_of)

    def since(self, position: int, limit: int | None) -> list[Event]:
        """The events from `position` (not before `first`) on, oldest first."""
        start = position - self.first
        return self.events[start:] if limit is None else self.events[start : start + limit]

    def undo(self, revision: int) -> dict[Key, Record | None]:
        """What the keys touched after `revision` held at that time; None where there was nothing."""
        before: dict[Key, Record | None] = {}
        for event in reversed(self.events):
            if event.record.revision <= revision:
                break
            before[event.record.key] = event.previous
        return before

    def prune(self, now: float) -> list[Event]:
        """Drop and return what is beyond the retention, or the oldest part if that is much: call it again for the rest.

        `now` is any clock that never goes back.
        """
        self._due_until(max(self.end - self._retention.max_events, self._aged_until(now)))
        while self._bytes > self._retention.max_bytes:
            self._due_until(self._due + 1)
        surplus = self._due - self.first
        # Moving the tail of a long list costs its length, so it is done in steps of an eighth.
        if surplus == 0 or (len(self.events) > SMALL and surplus * 8 < len(self.events)):
            return []
        return self._drop(min(surplus, AT_ONCE))

    def halve(self) -> list[Event]:
        """Drop and return the oldest events that hold half of the bytes, or the first part of them if they are many."""
        count, freed = 0, 0
        while freed * 2 < self.held and count < min(AT_ONCE, len(self.events)):
            freed += _held_bytes(self.events[count]) + EVENT_BYTES
            count += 1
        self._due_until(self.first + count)
        return self._drop(count)

    def _drop(self, count: int) -> list[Event]:
        dropped = self.events[:count]
        del self.events[:count]
        self.first += count
        self.horizon = dropped[-1].revision
        freed = sum(map(_held_bytes, dropped)) + EVENT_BYTES * count
        self.held -= freed
        self._total.bytes -= freed
        return dropped

    def _due_until(self, position: int) -> None:
        """Mark the events before `position` for dropping; what they hold no longer counts."""
        for event in self.events[self._due - self.first : max(position - self.first, 0)]:
            self._bytes -= _held_bytes(event)
        self._due = max(self._due, position)

    def _aged_until(self, now: float) -> int:
        """The position before which all events are older than the retention allows."""
        marks = self._marks
        if not marks or now - marks[-1][0] >= self._retention.max_age / 100:
            marks.append((now, self.end))
        position = self.first
        while marks and now - marks[0][0] > self._retention.max_age:
            position = marks.popleft()[1]
        return position


def _held_bytes(event: Event) -> int:
    held = event.previous.size if event.previous is not None else 0
    return held + event.record.size if event.type is EventType.DELETED else held
