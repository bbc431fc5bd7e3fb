"""How much of what is stored is on whose account, so that nobody takes all the room there is.

Objects are on the account of their namespace; those in none on that of their resource. The events of a namespace have
an account of their own: nodes and others write them about what is there, and it must not suffer from that.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dray.store.errors import ShareExceeded
from dray.store.records import GROWTH, Event, EventType, Key, Record

EVENTS: Final = "events"
DELETED_MARK: Final = b'"deletionTimestamp":'
DIGITS: Final = 4
"""What numbers in an object add when they get another digit: its revision, its generation."""

OBJECT_BYTES: Final = 1024
"""What an object counts for beside its data: small ones take room, too."""
PARTS: Final = 8
"""One account may have one of so many parts of the quota."""
LEAST_SHARE: Final = 64 << 20
"""A share is not smaller than this, however small the quota is."""
USUAL_QUOTA: Final = 8 << 30
"""What a quota is taken to be where it is not known: that of a state directory, and the most that etcd is meant for."""


def share_of(quota_bytes: int) -> int:
    """How many bytes one account may have; of a quota of 0, nothing is known."""
    return max((quota_bytes or USUAL_QUOTA) // PARTS, LEAST_SHARE)


def growth_beyond(held: int, most: int) -> int:
    """How many bytes an update may add on an account that has all it may have, and still count as one that adds none.

    Whoever does that again and again comes to an end, too.
    """
    return GROWTH if held < most + most // PARTS else DIGITS


def _account(key: Key) -> str:
    if key[0] == EVENTS:
        return f"{key[1]}/{EVENTS}"
    return key[1] or f"/{key[0]}"  # no namespace has a slash in its name


class Shares:
    """Bytes by account."""

    __slots__ = ("_bytes", "most")

    def __init__(self, most: int) -> None:
        self._bytes: dict[str, int] = {}
        self.most = most
        """What one account may have."""

    def load(self, records: Iterable[Record]) -> None:
        """Counts what is there already."""
        counted = self._bytes
        for record in records:
            account = _account(record.key)
            counted[account] = counted.get(account, 0) + OBJECT_BYTES + record.size

    def apply(self, event: Event) -> None:
        """Counts a change."""
        account, previous = _account(event.record.key), event.previous
        now = self._bytes.get(account, 0)
        if previous is not None:
            now -= OBJECT_BYTES + previous.size
        if event.type is not EventType.DELETED:
            now += OBJECT_BYTES + event.record.size
        if now:
            self._bytes[account] = now
        else:
            self._bytes.pop(account, None)

    def check(self, event: Event) -> None:
        """Raises ShareExceeded for a change that needs room on an account that has its share.

        What is on its way is not counted: an account may get a little more than its share.
        """
        key, previous = event.record.key, event.previous
        held = self._bytes.get(_account(key), 0)
        if held < self.most or event.type is EventType.DELETED:
            return
        if previous is not None:
            growth = event.record.size - previous.size
            if growth <= growth_beyond(held, self.most) or (growth <= GROWTH and _is_marked(event.record, previous)):
                return
        raise ShareExceeded(key, held, self.most, of=EVENTS if key.resource == EVENTS else "")


def _is_marked(new: Record, old: Record) -> bool:
    """Whether an update marks an object as deleted, which happens once."""
    return DELETED_MARK in new.data and DELETED_MARK not in old.data
