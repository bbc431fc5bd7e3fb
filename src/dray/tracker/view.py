"""What the tracker hands out: pools of effective devices, immutable and shared.

    ResourceSlice ┐
    patches       ├─ Tracker.apply(event) ─→ Change(pools) ─→ allocator, eviction, explain
    taint rules   ┘

An effective device is what the rest of dray means by a device: the driver's entry with patches merged in and every
taint on it, wherever it came from. An untouched device is the same object before and after an event.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from dray.api.node_selector import NodeSelector
from dray.api.resource import CounterSet, Device, DeviceTaint
from dray.api.resource.pool import PoolKey
from dray.api.resource.taint import EFFECT_NO_EXECUTE, EFFECT_NO_SCHEDULE, EFFECT_NONE
from dray.cel import DeviceView, device_view

_EFFECTS: Final = frozenset((EFFECT_NO_SCHEDULE, EFFECT_NO_EXECUTE))


class DeviceId(NamedTuple):
    """The name of a device in the cluster (4381-02)."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


class TrackedTaint(msgspec.Struct, frozen=True, gc=False):
    """A taint on a device, and where it comes from.

    `id` stays the same while the taint comes from the same rule, or has the same attributes in the slices of one
    pool; it does not survive a restart (5055-80). `rule` is the DeviceTaintRule's name, None if a driver published
    the taint (5055-81). `spreads` tells of a rule's taint that it reaches partitions, too (`partitions`).
    """

    id: int
    taint: DeviceTaint
    rule: str | None = None
    spreads: bool = False

    @property
    def effect(self) -> str:
        """The effect to act on: one that this version does not know counts as `None` (SVS-08)."""
        effect = self.taint.effect
        return effect if effect in _EFFECTS else EFFECT_NONE


class NodeAccess(msgspec.Struct, frozen=True, gc=False):
    """From where devices can be used: one node, nodes that match a selector, or (neither given) all nodes."""

    node_name: str | None = None
    node_selector: NodeSelector | None = None


ALL_NODES: Final = NodeAccess()
NO_NODES: Final = NodeAccess(node_selector=NodeSelector())
"""A selector without terms matches nothing: for slices that say nothing this version knows about nodes."""


class EffectiveDevice(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A device as the scheduler sees it. Compared by identity: a changed device is a new object.

    Ids are unique among the devices that one node can reach: a pool may publish one name on several nodes.
    """

    id: DeviceId
    device: Device
    """The driver's entry with patches merged in (attributes and capacities under the names they had, new ones
    qualified unless they belong to the driver's domain). Its `taints` are only what stands in the entry."""
    taints: tuple[TrackedTaint, ...]
    """Every taint: from the entry, then from `spec.taints` of the pool's slices, then from rules by name, then from
    devices that this is a partition of, if they pass theirs on. No id stands here twice."""
    access: NodeAccess
    slice_name: str
    patches: tuple[str, ...] = ()
    """Names of the ResourceSlicePatches that changed something here, strongest first."""

    @property
    def view(self) -> DeviceView:
        """What CEL sees of the patched device. Built at each access: a view is larger than the device itself."""
        return device_view(self.device, self.id.driver)


class PoolView(msgspec.Struct, frozen=True, eq=False, gc=False):
    """One pool, at its highest generation if it is not in parts.

    A pool that is incomplete or invalid has `problem` set and is never allocated from (SVS-50). Devices stand in
    the order in which they are tried: by slice name, then position.
    """

    driver: str
    name: str
    generation: int
    devices: tuple[EffectiveDevice, ...]
    counter_sets: tuple[CounterSet, ...] = ()
    problem: str | None = None
    """Why the pool cannot be used now, naming it: slices missing, a device or counter set published twice where one
    node can reach both, or counters consumed that no slice has."""
    incomplete: bool = False
    """True if `problem` is that slices are missing, which ends when the driver has published them all."""
    accesses: tuple[NodeAccess, ...] = ()
    """From where any of the pool's slices can be used, with or without devices, each once."""
    node: str = ""
    """The node that all slices are of; empty if they are of several, or for several."""
    hidden_from: frozenset[str] = frozenset()
    """Nodes that have a part of the pool of their own, and nothing to do with this one."""
    parts: tuple[PoolView, ...] = ()
    """If nodes have parts of their own (`pool_parts`): each part as a pool. Then this is only their sum: all devices,
    and neither counters nor problems."""

    def each(self) -> tuple[PoolView, ...]:
        """The pools that are allocated from: the parts, or this one if it is not in parts."""
        return self.parts or (self,)

    def for_node(self, node: str) -> PoolView | None:
        """What counts for a node, or (empty) for nodes that have no part of their own; None if nothing does."""
        if not self.parts:
            return self
        own = next((part for part in self.parts if part.node == node), None)
        return own or next((part for part in self.parts if not part.node and node not in part.hidden_from), None)


class Change(msgspec.Struct, frozen=True):
    """What an event changed: the pools that are new, different or gone, by (driver, pool name)."""

    pools: frozenset[PoolKey] = frozenset()


class Problem(msgspec.Struct, frozen=True):
    """Why a rule or patch does not apply to some devices, for a Warning event on it (5027-33, SVS-12).

    There is one problem per selector, however many devices it fails on.
    """

    kind: str
    name: str
    reason: str
    """`CELRuntimeError`, `CELCompileError` or `UnsupportedSelector`; for patches also `UnknownAttributeValue`."""
    message: str
    """Says where in the object the problem is, for example "selector #0: runtime error: …"."""
    selector: int | None = None
    """Position in the object's `selectors`, or in those of the device class if `device_class` is set."""
    device_class: str | None = None
    device: DeviceId | None = None
    """One of the devices that were skipped; None if the expression fails on all of them."""
    count: int = 0
    """How many devices were skipped because of this."""
