"""Addresses for pods: each pod one of its own in 10.0.0.0/8 as long as it is there."""

from __future__ import annotations

from typing import Final

SPACE: Final = 1 << 24


class Addresses:
    """Hands out addresses, by the pod's uid."""

    def __init__(self) -> None:
        self._by_uid: dict[str, str] = {}
        self._taken: set[str] = set()
        self._next = 1

    def note(self, uid: str, address: str) -> None:
        """A pod has an address already."""
        if address and uid not in self._by_uid:
            self._by_uid[uid] = address
            self._taken.add(address)

    def take(self, uid: str) -> str:
        """The pod's address; a free one if it has none yet."""
        known = self._by_uid.get(uid)
        if known is not None:
            return known
        while True:
            number, self._next = self._next, self._next % (SPACE - 2) + 1
            address = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
            if address not in self._taken:
                self.note(uid, address)
                return address

    def release(self, uid: str) -> None:
        """The pod is gone or finished."""
        self._taken.discard(self._by_uid.pop(uid, ""))
