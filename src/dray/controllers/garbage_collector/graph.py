"""Who depends on whom: objects by the uid of their owners."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from dray.api.meta import Object, OwnerReference
from dray.api.registry import Kind


class Item(NamedTuple):
    """An object by kind and place. Whether it is still the same object, its uid tells."""

    kind: Kind
    namespace: str
    name: str

    @classmethod
    def of(cls, kind: Kind, obj: Object) -> Item:
        """Where an object is."""
        return cls(kind, obj.metadata.namespace, obj.metadata.name)

    def __str__(self) -> str:
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind.kind} {place}"


class Graph:
    """Only objects with owners are kept, so that most of a cluster costs nothing here."""

    def __init__(self) -> None:
        self._dependents: dict[str, dict[Item, bool]] = {}

    def change(self, item: Item, old: Iterable[OwnerReference], new: Iterable[OwnerReference]) -> None:
        """Notes the owners that an item had and has."""
        for reference in old:
            found = self._dependents.get(reference.uid)
            if found is not None:
                found.pop(item, None)
                if not found:
                    del self._dependents[reference.uid]
        for reference in new:
            self._dependents.setdefault(reference.uid, {})[item] = bool(reference.block_owner_deletion)

    def dependents(self, uid: str) -> list[Item]:
        """Those that depend on an owner."""
        return list(self._dependents.get(uid, ()))

    def is_in_circle(self, item: Item, uid: str, waits: Callable[[Item], str]) -> bool:
        """Whether an item depends on itself over dependents that wait for their own.

        `waits` says the uid of an item that waits, empty if it does not. Everybody is looked at once.
        """
        seen: set[Item] = set()
        to_look_at = self.dependents(uid)
        while to_look_at:
            one = to_look_at.pop()
            if one == item:
                return True
            if one not in seen:
                seen.add(one)
                waiting_uid = waits(one)
                if waiting_uid:
                    to_look_at.extend(self._dependents.get(waiting_uid, ()))
        return False

    def blocks(self, uid: str) -> bool:
        """Whether any of those must be gone before the owner may go."""
        return any(self._dependents.get(uid, {}).values())
