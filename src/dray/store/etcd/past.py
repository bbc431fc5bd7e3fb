"""Whether etcd has the past that was heard of. Pure.

A backup that is put in place of etcd has fewer revisions than there were. Once somebody has written to it, revisions
say nothing any more: the same number is of another change. So a watch that is resumed begins with changes that were
heard of before, and they are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dray.store.etcd.generated import etcd_pb2 as pb

_PUT: Final = pb.Event.EventType.PUT


class OtherPast(Exception):
    """etcd tells something else than it did."""


class Past:
    """The last changes: those since the last one that says by itself which past it is of.

    Removals and keys without a value say too little: they may be the same in another past.
    """

    def __init__(self) -> None:
        self.first = 0
        """The revision that they begin with; 0 if none were heard of."""
        self.last = 0
        self.sum = 0

    def add(self, events: Sequence[Any]) -> None:
        """These came next: all changes of some revisions, in order."""
        begin = _last_telling(events)
        if begin is not None:
            self.first, self.sum = events[begin].kv.mod_revision, 0
        elif not self.first:
            return
        self.sum = _sum(events[begin or 0 :], self.sum)
        self.last = events[-1].kv.mod_revision


class Replay:
    """Hears the last changes of a past again, up to a revision of etcd after them up to which there were no more."""

    def __init__(self, past: Past, told: int) -> None:
        self._past = past
        self._told = told
        self._sum = 0
        self.is_over = not past.first

    def take(self, events: Sequence[Any]) -> Sequence[Any]:
        """What is new among these, or that there is nothing more. Raises OtherPast."""
        if self.is_over:
            return events
        last = self._past.last
        known = [event for event in events if event.kv.mod_revision <= last]
        self._sum = _sum(known, self._sum)
        new = events[len(known) :]
        self.is_over = bool(new) or not known or known[-1].kv.mod_revision == last
        if self.is_over and self._sum != self._past.sum:
            raise OtherPast
        if new and new[0].kv.mod_revision <= self._told:
            raise OtherPast
        return new


def _last_telling(events: Sequence[Any]) -> int | None:
    """Where the last revision begins that has a change that says something by itself."""
    for at in range(len(events) - 1, -1, -1):
        if events[at].type == _PUT and events[at].kv.value:
            revision = events[at].kv.mod_revision
            while at and events[at - 1].kv.mod_revision == revision:
                at -= 1
            return at
    return None


def _sum(events: Sequence[Any], before: int) -> int:
    for event in events:
        before = hash((before, event.type, event.kv.key, event.kv.value))
    return before
