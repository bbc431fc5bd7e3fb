"""Who depends on whom: objects by the uid of their owners."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from dray.api.meta import Object, ObjectMeta, OwnerReference
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
    """Only objects with owners are kept, so that most of a cluster costs nothing here.

    An owner in a namespace has dependents there alone, whatever objects of other namespaces say.
    """

    def __init__(self) -> None:
        self._dependents: dict[str, dict[str, dict[Item, bool]]] = {}
        """By the uid of an owner, and by their namespace."""

    def change(self, item: Item, old: Iterable[OwnerReference], new: Iterable[OwnerReference]) -> None:
        """Notes the owners that an item had and has."""
        for reference in old:
            self._forget(item, reference.uid)
        for reference in new:
            of_owner = self._dependents.setdefault(reference.uid, {})
            of_owner.setdefault(item.namespace, {})[item] = bool(reference.block_owner_deletion)

    def _forget(self, item: Item, uid: str) -> None:
        of_owner = self._dependents.get(uid, {})
        found = of_owner.get(item.namespace, {})
        if found.pop(item, None) is not None and not found:
            del of_owner[item.namespace]
            if not of_owner:
                del self._dependents[uid]

    def _of(self, owner: ObjectMeta) -> list[dict[Item, bool]]:
        of_owner = self._dependents.get(owner.uid, {})
        if not owner.namespace:
            return list(of_owner.values())
        return [of_owner[owner.namespace]] if owner.namespace in of_owner else []

    def dependents(self, owner: ObjectMeta) -> list[Item]:
        """Those that depend on an owner."""
        return [item for some in self._of(owner) for item in some]

    def is_in_circle(self, item: Item, meta: ObjectMeta, waits: Callable[[Item], ObjectMeta | None]) -> bool:
        """Whether an item depends on itself over dependents that wait for their own.

        `waits` gives what is known of an item that waits, None if it does not. Everybody is looked at once.
        """
        seen: set[Item] = set()
        to_look_at = self.dependents(meta)
        while to_look_at:
            one = to_look_at.pop()
            if one == item:
                return True
            if one not in seen:
                seen.add(one)
                waiting = waits(one)
                if waiting is not None:
                    to_look_at.extend(self.dependents(waiting))
        return False

    def blocks(self, owner: ObjectMeta) -> bool:
        """Whether any of those must be gone before the owner may go."""
        return any(any(some.values()) for some in self._of(owner))
