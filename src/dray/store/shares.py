"""How much of what is stored is on whose account, so that nobody takes all the room there is.

Objects are on the account of their namespace; those in none on that of their resource.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dray.store.errors import ShareExceeded
from dray.store.records import Event, EventType, Key, Record

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


def _account(key: Key) -> str:
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
            counted[account] = counted.get(account, 0) + OBJECT_BYTES + len(record.data)

    def apply(self, event: Event) -> None:
        """Counts a change."""
        account, previous = _account(event.record.key), event.previous
        now = self._bytes.get(account, 0)
        if previous is not None:
            now -= OBJECT_BYTES + len(previous.data)
        if event.type is not EventType.DELETED:
            now += OBJECT_BYTES + len(event.record.data)
        if now:
            self._bytes[account] = now
        else:
            self._bytes.pop(account, None)

    def check(self, key: Key) -> None:
        """Raises ShareExceeded if nothing that needs room may be written at a key.

        What is on its way is not counted: an account may get a little more than its share.
        """
        held = self._bytes.get(_account(key), 0)
        if held >= self.most:
            raise ShareExceeded(key, held, self.most)
