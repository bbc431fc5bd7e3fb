"""Tracker and inventory for a family of snapshots, moved from one to the other by what differs between them.

root objects ──┬── snapshot {}              the world stands at one of them;
               ├── snapshot {a: changed}    asking another first applies the difference,
               └── snapshot {a: …, b: gone} which is small, so that changed copies are cheap
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from dray.allocator import Inventory
from dray.api.generated.core import Node
from dray.api.meta import Object
from dray.api.registry import RESOURCE_GROUP, by_kind
from dray.api.resource import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice, ResourceSlicePatch
from dray.snapshot.objects import Ref
from dray.tracker import Event, Remove, Tracker, Upsert

Changes = Mapping[Ref, Object | None]
T = TypeVar("T", bound=Object)

TRACKED = (ResourceSlice, ResourceSlicePatch, DeviceTaintRule, DeviceClass)
CLAIMS = by_kind(f"{RESOURCE_GROUP}/v1", "ResourceClaim").resource
SLICES = by_kind(f"{RESOURCE_GROUP}/v1", "ResourceSlice").resource
CLASSES = by_kind(f"{RESOURCE_GROUP}/v1", "DeviceClass").resource
NODES = "nodes"
PODS = "pods"


class World:
    """The machinery behind snapshots that share a root."""

    def __init__(self, root: dict[Ref, Object]) -> None:
        self.root = root
        self.tracker = Tracker()
        self.inventory = Inventory()
        self.classes: dict[str, DeviceClass] = {}
        self._at: Changes = {}
        self._mentions: dict[str, int] = {}
        self._known_nodes: dict[str, bool] = {}
        self._built = False

    def move_to(self, changes: Changes, base: Changes | None = None, touched: Iterable[Ref] = ()) -> None:
        """Makes tracker and inventory those of the snapshot with these changes.

        If they differ from those of another snapshot, `base`, only in what is `touched`, a step from there costs no
        more than that: a chain of a thousand small changes is not a thousand comparisons of everything.
        """
        if not self._built:
            self._built = True
            self._apply((None, obj) for obj in self.root.values())
        if changes is self._at:
            return
        refs = touched if base is self._at else {**self._at, **changes}
        differing = [ref for ref in refs if self._now(ref) is not self._then(ref, changes)]
        steps = [(self._now(ref), self._then(ref, changes)) for ref in differing]
        self._at = changes
        self._apply(iter(steps))

    def _now(self, ref: Ref) -> Object | None:
        return self._at[ref] if ref in self._at else self.root.get(ref)

    def _then(self, ref: Ref, changes: Changes) -> Object | None:
        return changes[ref] if ref in changes else self.root.get(ref)

    def _apply(self, steps: Iterator[tuple[Object | None, Object | None]]) -> None:
        events: list[Event] = []
        claims: list[tuple[ResourceClaim | None, ResourceClaim | None]] = []
        for old, new in steps:
            obj = new if new is not None else old
            if isinstance(obj, TRACKED):
                events.append(Upsert(obj) if new is not None else Remove.of(obj))
                self._note(old, new)
            elif isinstance(obj, Node):
                self._set_node(obj, present=new is not None)
            elif isinstance(obj, ResourceClaim):
                claims.append((_as(old, ResourceClaim), _as(new, ResourceClaim)))
        changed = self.tracker.apply_all(events).pools
        self.inventory.apply_pools(self.tracker.pools.get(key, key) for key in changed)
        for old_claim, new_claim in claims:
            self.inventory.apply_claim(old_claim, new_claim)

    def _note(self, old: Object | None, new: Object | None) -> None:
        """Classes, and the nodes that slices mention: a dump without Node objects still has nodes."""
        for obj, step in ((old, -1), (new, 1)):
            if isinstance(obj, DeviceClass):
                self.classes.pop(obj.metadata.name, None)
            elif isinstance(obj, ResourceSlice) and obj.spec.node_name:
                self._mention(obj.spec.node_name, step)
        if isinstance(new, DeviceClass):
            self.classes[new.metadata.name] = new

    def _mention(self, name: str, step: int) -> None:
        self._mentions[name] = self._mentions.get(name, 0) + step
        if self._known_nodes.get(name):
            return
        if self._mentions[name] > 0:
            self.inventory.set_node(name, {})
        else:
            self.inventory.remove_node(name)

    def _set_node(self, node: Node, *, present: bool) -> None:
        name = node.metadata.name
        self._known_nodes[name] = present
        if present:
            self.inventory.set_node(name, node.metadata.labels)
        elif self._mentions.get(name, 0) > 0:
            self.inventory.set_node(name, {})
        else:
            self.inventory.remove_node(name)


def _as(obj: Object | None, kind: type[T]) -> T | None:
    return obj if isinstance(obj, kind) else None
