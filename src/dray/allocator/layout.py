"""All devices in sight from one node, in the order in which they are tried.

Pools go by driver and name; a pool with any device that has binding conditions goes last. Devices of a pool go by slice
name and position. A device's position in this order is its bit in every set of devices:

    segment      gpu.example.com/node-1     nic.example.com/node-1     gpu.example.com/fabric (binding)
    bits         0 … 7                      8 … 9                      10 … 41
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeAlias

from dray.allocator.counters import CounterBudget
from dray.allocator.holdings import NOTHING, Occupancy
from dray.allocator.pools import Pool, Segment
from dray.allocator.selection import Candidates, Criteria
from dray.api.node_selector import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dray.api.recent import Bounded
from dray.api.resource import Device, DeviceAttribute
from dray.tracker.columns import positions
from dray.tracker.view import EffectiveDevice

Value: TypeAlias = tuple[str, Any]
"""An attribute value with its type, so that 1, "1" and true differ. Versions compare as strings."""

_CACHED_CRITERIA: Final = 64

_TYPES: Final = (
    ("int", "ints", "int_value"),
    ("bool", "bools", "bool_value"),
    ("string", "strings", "string"),
    ("version", "versions", "version"),
)


class AttributeIndex:
    """The devices of a layout by the value of one attribute; a list counts under each of its values."""

    __slots__ = ("groups", "present", "values")

    def __init__(self, name: str, devices: Iterable[EffectiveDevice]) -> None:
        self.values: list[frozenset[Value]] = []
        """By position; empty if the device lacks the attribute."""
        self.groups: dict[Value, int] = {}
        self.present = 0
        for position, device in enumerate(devices):
            values = values_of(find_attribute(device.device, device.id.driver, name))
            self.values.append(values)
            if values:
                self.present |= 1 << position
            for value in values:
                self.groups[value] = self.groups.get(value, 0) | 1 << position

    def having(self, values: Iterable[Value]) -> int:
        """The devices with any of these values."""
        found = 0
        for value in values:
            found |= self.groups.get(value, 0)
        return found


def find_attribute(device: Device, driver: str, name: str) -> DeviceAttribute | None:
    """An attribute by its fully qualified name; names without domain belong to the driver's (4381-24)."""
    attribute = device.attributes.get(name)
    if attribute is not None:
        return attribute
    domain, slash, identifier = name.partition("/")
    return device.attributes.get(identifier) if slash and domain == driver else None


def values_of(attribute: DeviceAttribute | None) -> frozenset[Value]:
    """The values of an attribute as a set; empty if there is none."""
    if attribute is None:
        return frozenset()
    for kind, plural, _ in _TYPES:
        values = getattr(attribute, plural)
        if values:
            return frozenset((kind, value) for value in values)
    for kind, _, singular in _TYPES:
        value = getattr(attribute, singular)
        if value is not None:
            return frozenset(((kind, value),))
    return frozenset()


class Held(NamedTuple):
    """What claims hold of the devices of a layout."""

    taken: int
    shared: int
    counters: tuple[CounterBudget | None, ...]
    """What is left of the counters, by segment; empty if no device draws from any."""
    consumed: dict[int, dict[str, int]]
    """What shares take of capacities, by position."""


class Layout:
    """The devices in sight from a node, segment by segment. Static: made anew when a pool or the node's labels change.

    Who holds what is read from the occupancies at the time of asking.
    """

    def __init__(self, node_name: str, segments: list[tuple[Segment, Occupancy]], problems: list[Pool]) -> None:
        self.node_name: Final = node_name
        self.segments: Final = segments
        self.problems: Final = sorted(problems, key=lambda pool: pool.key)
        """Pools in sight that cannot be used, because they are incomplete or invalid."""
        self.offsets: Final[list[int]] = []
        self.shareable = 0
        self.metered = 0
        size = 0
        for segment, _ in segments:
            self.offsets.append(size)
            self.shareable |= segment.shareable << size
            self.metered |= segment.metered << size
            size += len(segment.devices)
        self.size: Final = size
        self._candidates: Bounded[Criteria, Candidates] = Bounded(_CACHED_CRITERIA)
        self._attributes: Bounded[str, AttributeIndex] = Bounded(_CACHED_CRITERIA)

    @cached_property
    def devices(self) -> tuple[EffectiveDevice, ...]:
        """All devices by position."""
        if len(self.segments) == 1:
            return self.segments[0][0].devices
        return tuple(device for segment, _ in self.segments for device in segment.devices)

    @cached_property
    def segment_of(self) -> tuple[int, ...]:
        """The number of the segment that the device at each position belongs to."""
        return tuple(n for n, (segment, _) in enumerate(self.segments) for _ in segment.devices)

    @cached_property
    def local_selector(self) -> NodeSelector:
        """Selects this node only."""
        name = NodeSelectorRequirement(key="metadata.name", operator="In", values=(self.node_name,))
        return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(name,)),))

    def candidates(self, criteria: Criteria) -> Candidates:
        """What the criteria say of the devices in sight."""
        if len(self.segments) == 1:
            return self.segments[0][0].candidates(criteria)
        found = self._candidates.get(criteria)
        if found is None:
            sets = [0] * len(Candidates._fields)
            for offset, (segment, _) in zip(self.offsets, self.segments, strict=True):
                for number, mask in enumerate(segment.candidates(criteria)):
                    sets[number] |= mask << offset
            found = Candidates(*sets)
            if not found.unsettled:
                self._candidates.keep(criteria, found)
        return found

    def attribute(self, name: str) -> AttributeIndex:
        """The devices by the value of an attribute."""
        found = self._attributes.get(name)
        if found is None:
            found = self._attributes.keep(name, AttributeIndex(name, self.devices))
        return found

    def taken(self) -> int:
        """The devices that a claim holds alone."""
        return self._gather([occupancy.taken for _, occupancy in self.segments])

    def shared(self) -> int:
        """The devices of which claims hold shares."""
        return self._gather([occupancy.shared for _, occupancy in self.segments])

    def _gather(self, masks: list[int]) -> int:
        """Sets of positions in each pool as one set of positions in this layout."""
        gathered = 0
        for offset, mask, (segment, _) in zip(self.offsets, masks, self.segments, strict=True):
            if mask:
                gathered |= segment.narrow(mask) << offset
        return gathered

    def consumed(self, position: int) -> Mapping[str, int]:
        """What shares take of the capacities of the device at a position."""
        if not self.segments:
            return NOTHING
        _, occupancy = self.segments[self.segment_of[position]]
        return occupancy.consumed(self.devices[position].id.device)

    def held(self) -> Held:
        """All that is held of the devices in sight, as a value."""
        shared = self.shared()
        return Held(
            self.taken(),
            shared,
            tuple([occupancy.budget() for _, occupancy in self.segments]) if self.metered else (),
            {position: dict(self.consumed(position)) for position in positions(shared)},
        )


def in_order(segments: list[tuple[Segment, Occupancy]]) -> list[tuple[Segment, Occupancy]]:
    """Segments in the order in which they are tried."""
    return sorted(segments, key=lambda entry: (entry[0].binding, entry[0].pool.key))


def reorder(layout: Layout, preference: Callable[[EffectiveDevice], Any]) -> Layout:
    """The same devices, tried in the order of a preference; devices of equal preference keep their order."""
    single: list[tuple[Segment, Occupancy]] = []
    for segment, occupancy in layout.segments:
        for position in range(len(segment.devices)):
            pool_position = segment.pool_position(position)
            single.append((Segment(segment.pool, (pool_position,), segment.eligible >> position & 1), occupancy))
    single.sort(key=lambda entry: preference(entry[0].devices[0]))
    return Layout(layout.node_name, single, layout.problems)
