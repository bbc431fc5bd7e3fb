"""Who holds which device of a pool, kept up to date claim by claim.

Holdings outlive the devices: a claim stays allocated when its device disappears, and the device is taken again when it
comes back (4381-101, 4381-102). Results with adminAccess hold nothing (4381-48).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from dray.allocator.counters import CounterBudget
from dray.allocator.pools import Pool
from dray.api.resource import DeviceRequestAllocationResult
from dray.tracker.columns import positions

NOTHING: Final[Mapping[str, int]] = MappingProxyType({})


class Holding:
    """What claims hold of one device: all of it, or shares."""

    __slots__ = ("consumed", "holders", "shares")

    def __init__(self) -> None:
        self.holders: list[str] = []
        """Claims that hold the device alone; more than one only if someone else gave it away twice."""
        self.shares: list[str] = []
        """Claims with a share, once for each share."""
        self.consumed: dict[str, int] = {}
        """What the shares take of each capacity, in nano units."""

    def is_empty(self) -> bool:
        return not self.holders and not self.shares


class Holdings:
    """The holdings of one pool, by device name, and what they mean for the devices that are published."""

    __slots__ = ("by_device", "published")

    def __init__(self) -> None:
        self.by_device: dict[str, Holding] = {}
        self.published: tuple[Occupancy, ...] = ()
        """One for the pool, or one for each part of it. An allocation says only the name of a device: it holds those
        of that name in all parts."""

    def publish(self, pools: Iterable[Pool]) -> None:
        """The pool changed or disappeared: find the held devices among its devices."""
        before = {occupancy.pool.view.node: occupancy for occupancy in self.published}
        self.published = tuple([Occupancy(pool, self.by_device, before.get(pool.view.node)) for pool in pools])

    def hold(self, claim: str, result: DeviceRequestAllocationResult) -> None:
        """A claim was given a device or a share of it."""
        holding = self.by_device.setdefault(result.device, Holding())
        if result.share_id is None:
            holding.holders.append(claim)
        else:
            holding.shares.append(claim)
            for name, amount in result.consumed_capacity.items():
                holding.consumed[name] = holding.consumed.get(name, 0) + amount.nanos
        self._mark(result.device)

    def release(self, claim: str, result: DeviceRequestAllocationResult) -> None:
        """A claim gave it back; the same result that was held."""
        holding = self.by_device[result.device]
        if result.share_id is None:
            holding.holders.remove(claim)
        else:
            holding.shares.remove(claim)
            for name, amount in result.consumed_capacity.items():
                holding.consumed[name] -= amount.nanos
        if holding.is_empty():
            del self.by_device[result.device]
        self._mark(result.device)

    def _mark(self, name: str) -> None:
        for occupancy in self.published:
            occupancy.mark(name)


class Occupancy:
    """What is held of a published pool; `taken` and `shared` are sets of positions in it."""

    __slots__ = ("_budget", "_by_device", "pool", "revision", "shared", "taken")

    def __init__(self, pool: Pool, by_device: Mapping[str, Holding], before: Occupancy | None = None) -> None:
        """What is held is taken over from `before` where each device stands where it stood."""
        self.pool = pool
        self._by_device = by_device
        self.taken = 0
        """Devices that a claim holds alone, and those that are not shared any more, of which claims hold shares."""
        self.shared = 0
        """Devices of which claims hold shares."""
        self.revision = 0
        """Another one whenever something is given or taken back."""
        self._budget: CounterBudget | None = None
        if by_device and before is not None and pool.take_over(before.pool):
            self.taken, self.shared = before.taken, before.shared
            for name in [name for name, holding in by_device.items() if holding.shares] if self.shared else ():
                self.mark(name)  # a device may be shared, or not be shared any more
        else:
            self._mark_all()

    def mark(self, name: str) -> None:
        """Bring the sets of positions in line with what is held of one device."""
        places = self.pool.named.get(name, ())
        mask = _mask_of(places)
        self._budget = None
        self.revision += 1
        holding = self._by_device.get(name)
        alone = _mask_of(self._held_alone(places, holding)) if holding is not None else 0
        self.taken = self.taken & ~mask | alone
        self.shared = self.shared | mask if holding is not None and holding.shares else self.shared & ~mask

    def _mark_all(self) -> None:
        alone: list[int] = []
        shared: list[int] = []
        for name, holding in self._by_device.items():
            places = self.pool.named.get(name, ())
            alone.extend(self._held_alone(places, holding))
            if holding.shares:
                shared.extend(places)
        self.taken, self.shared = _mask_of(alone), _mask_of(shared)

    def _held_alone(self, places: Sequence[int], holding: Holding) -> Sequence[int]:
        """Of the places of a device those where nobody else can have a share of it."""
        if holding.holders or not holding.shares:
            return places if holding.holders else ()
        devices = self.pool.view.devices
        return [place for place in places if not devices[place].device.allow_multiple_allocations]

    def holders(self, position: int) -> tuple[str, ...]:
        """The claims that hold the device at a position, or shares of it, each once."""
        holding = self._by_device.get(self.pool.view.devices[position].id.device)
        return () if holding is None else tuple(dict.fromkeys((*holding.holders, *holding.shares)))

    def consumed(self, name: str) -> Mapping[str, int]:
        """What shares take of a device's capacities."""
        holding = self._by_device.get(name)
        return NOTHING if holding is None else holding.consumed

    def budget(self) -> CounterBudget | None:
        """What is left of the pool's counters; None if it has none."""
        if self._budget is None and self.pool.counters is not None:
            self._budget = self.pool.counters.budget(positions(self.taken | self.shared))
        return self._budget


def _mask_of(places: Sequence[int]) -> int:
    """A set of positions. One by one, thousands of large numbers would be made for thousands of devices."""
    if len(places) <= 1:
        return 1 << places[0] if places else 0
    octets = bytearray(max(places) // 8 + 1)
    for place in places:
        octets[place >> 3] |= 1 << (place & 7)
    return int.from_bytes(octets, "little")
