"""How many decisions are being written at a time, of all pods and of those of each namespace.

A namespace has no more than are left for others: webhooks there may take half a minute for each write, and whoever
comes then still finds room.
"""

from __future__ import annotations

from collections.abc import Callable


class Slots:
    """Taken when a decision is made, given back when it is written or has failed."""

    def __init__(self, most: int, on_room: Callable[[], None]) -> None:
        """`on_room` hears that there is room again."""
        self._free = most
        self._held: dict[str, int] = {}
        self._on_room = on_room

    def has_room(self, namespace: str) -> bool:
        """Whether one more of a namespace may be written."""
        return self._held.get(namespace, 0) < self._free

    def take(self, namespace: str) -> None:
        """One more is being written."""
        self._held[namespace] = self._held.get(namespace, 0) + 1
        self._free -= 1

    def give_back(self, namespace: str) -> None:
        """One less is."""
        self._free += 1
        held = self._held.pop(namespace) - 1
        if held:
            self._held[namespace] = held
        self._on_room()
