"""A pool as the allocator keeps it: devices by position, from where they can be seen, and the counters they share.

Static: made anew when the pool changes. Who holds which device is in `holdings`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from typing import Final

from dray.allocator import counters
from dray.allocator.selection import Candidates, Criteria, Examined, examine
from dray.api import node_match
from dray.api.recent import Bounded
from dray.api.resource.pool import PoolKey
from dray.tracker.view import NodeAccess, PoolView

_CACHED_CRITERIA: Final = 64
"""Answers kept per segment. Beyond that all are dropped: cheaper than bookkeeping, and rarely reached."""
_LARGE: Final = 500
_CACHED_IF_LARGE: Final = 512
"""Large pools are few, and to ask all their devices takes long: more is remembered than one claim can ask for."""

_slice_name = attrgetter("slice_name")
_access = attrgetter("access")


class Segment:
    """The devices of a pool that are in sight from a node, in the order in which they are tried.

    A slice that selects nodes per device is in sight as a whole if one of its devices is: selectors are then
    evaluated on all of them, and only `eligible` ones can be chosen.
    """

    __slots__ = (
        "_begun",
        "_candidates",
        "_is_large",
        "binding",
        "devices",
        "eligible",
        "metered",
        "pool",
        "positions",
        "shareable",
    )

    def __init__(self, pool: Pool, positions: tuple[int, ...] | None, eligible: int) -> None:
        self.pool = pool
        self.positions = positions
        """Positions in the pool; None if the segment is the whole pool."""
        devices = pool.view.devices
        self.devices = devices if positions is None else tuple(devices[p] for p in positions)
        self.eligible = eligible
        self.shareable = 0
        self.metered = 0
        self.binding = False
        for position, device in enumerate(self.devices):
            entry = device.device
            if entry.allow_multiple_allocations:
                self.shareable |= 1 << position
            if entry.consumes_counters:
                self.metered |= 1 << position
            if entry.binding_conditions:
                self.binding = True
        self._is_large = len(self.devices) >= _LARGE
        most = _CACHED_IF_LARGE if self._is_large else _CACHED_CRITERIA
        self._candidates: Bounded[Criteria, Candidates] = Bounded(most)
        self._begun: Bounded[Criteria, Examined] = Bounded(_CACHED_CRITERIA)

    def candidates(self, criteria: Criteria) -> Candidates:
        """What the criteria say of these devices; computed once, in several turns if there are many."""
        found = self._candidates.get(criteria)
        if found is None:
            examined = examine(criteria, self.devices, self._begun.pop(criteria, None) if self._is_large else None)
            selected, usable, faulty, overflowing, unsettled = examined.candidates(len(self.devices))
            eligible = self.eligible
            found = Candidates(selected & eligible, usable & eligible, faulty, overflowing & eligible, unsettled)
            if not unsettled:
                self._candidates.keep(criteria, found)
            elif self._is_large and examined.position and not examined.unsettled:
                self._begun.keep(criteria, examined)
        return found

    def narrow(self, mask: int) -> int:
        """A set of pool positions as a set of positions in this segment."""
        if self.positions is None or not mask:
            return mask
        return sum((mask >> p & 1) << i for i, p in enumerate(self.positions))

    def pool_position(self, position: int) -> int:
        """Where the device at a position of this segment stands in its pool."""
        return position if self.positions is None else self.positions[position]


class Pool:
    """One pool of devices, immutable."""

    def __init__(self, view: PoolView) -> None:
        self.view: Final = view
        self.key: Final[PoolKey] = (view.driver, view.name)
        self._slices: list[range] = []
        self._slices_of: dict[NodeAccess, list[int]] = {}
        self._index_slices()
        self._shared = [access for access in self._slices_of if access.node_name is None]
        self.accesses: Final = {*view.accesses, *self._slices_of}
        self.local_nodes: Final = tuple([one.node_name for one in self.accesses if one.node_name is not None])
        """Names of the nodes that slices or devices are local to."""
        self.selectors: Final = tuple([one.node_selector for one in self.accesses if one.node_selector is not None])
        """The node selectors of slices or devices that are attached to a network."""
        self.everywhere: Final = len(self.accesses) > len(self.local_nodes) + len(self.selectors)
        """Whether some slice or device can be used from all nodes."""
        table = counters.read_counters(view.counter_sets, view.devices)
        self.counters: Final = None if isinstance(table, str) else table
        fault = f"resource pool {self} is invalid: {table}" if isinstance(table, str) else None
        self.problem: Final = view.problem or fault
        self.selector_fault: Final = _selector_fault(self)
        self._whole: Segment | None = None

    def __str__(self) -> str:
        return f"{self.view.driver}/{self.view.name}"

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The name of the device at each position."""
        return tuple([device.id.device for device in self.view.devices])

    @cached_property
    def named(self) -> Mapping[str, tuple[int, ...]]:
        """Positions by device name. A name may stand for devices of several nodes; an allocation, which says only the
        name, is then one of all of them."""
        places: dict[str, tuple[int, ...]] = {}
        for position, name in enumerate(self.names):
            places[name] = (*places[name], position) if name in places else (position,)
        return places

    def take_over(self, before: Pool) -> bool:
        """Whether each device stands where it stood before. What follows from that alone need not be found again."""
        if self.names != before.names:
            return False
        if "named" in before.__dict__:
            self.__dict__["named"] = before.named
        return True

    def is_in_sight(self, node_name: str, node_labels: Mapping[str, str]) -> bool:
        """Whether a slice can be used from a node, even if it has no devices."""
        return NodeAccess(node_name=node_name) in self.accesses or any(
            reaches(access, node_name, node_labels) for access in self.accesses if access.node_name is None
        )

    def segment(self, node_name: str, node_labels: Mapping[str, str]) -> Segment | None:
        """The devices in sight from a node, None if there are none."""
        seen = {access for access in self._shared if reaches(access, node_name, node_labels)}
        local = NodeAccess(node_name=node_name)
        if local in self._slices_of:
            seen.add(local)
        if not seen:
            return None
        if len(seen) == len(self._slices_of):
            return self._all_devices()
        in_sight = sorted({number for access in seen for number in self._slices_of[access]})
        positions = tuple(position for number in in_sight for position in self._slices[number])
        devices = self.view.devices
        eligible = sum(1 << i for i, p in enumerate(positions) if devices[p].access in seen)
        return Segment(self, positions, eligible)

    def _all_devices(self) -> Segment:
        if self._whole is None:
            self._whole = Segment(self, None, (1 << len(self.view.devices)) - 1)
        return self._whole

    def candidates(self, criteria: Criteria) -> Candidates:
        """What the criteria say of all devices."""
        return self._all_devices().candidates(criteria)

    def concerns(self, criteria: Criteria) -> bool:
        """Whether some device is selected by the criteria, or cannot be judged."""
        return any(self.candidates(criteria))

    def _index_slices(self) -> None:
        begin = 0
        for _, entries in groupby(self.view.devices, key=_slice_name):
            devices = tuple(entries)
            last = None
            for access in map(_access, devices):
                if access is not last:  # mostly it is one object
                    last = access
                    numbers = self._slices_of.setdefault(access, [])
                    if not numbers or numbers[-1] != len(self._slices):
                        numbers.append(len(self._slices))
            self._slices.append(range(begin, begin + len(devices)))
            begin += len(devices)


def reaches(access: NodeAccess, node_name: str, node_labels: Mapping[str, str]) -> bool:
    """Whether a device can be used from a node. A selector that cannot be read reaches no node."""
    if access.node_name is not None:
        return access.node_name == node_name
    if access.node_selector is None:
        return True
    try:
        return node_match.matches(access.node_selector, node_name, node_labels)
    except node_match.NodeSelectorError:
        return False


def _selector_fault(pool: Pool) -> str | None:
    for selector in pool.selectors:
        try:
            node_match.matches(selector, "", {})
        except node_match.NodeSelectorError as error:
            return f"resource pool {pool}: unreadable node selector: {error}"
    return None
