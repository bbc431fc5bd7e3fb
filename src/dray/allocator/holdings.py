"""Who holds which device of a pool, kept up to date claim by claim.

Holdings outlive the devices: a claim stays allocated when its device disappears, and the device is taken again when it
comes back (4381-101, 4381-102). Results with adminAccess hold nothing (4381-48).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
        self.published = tuple([Occupancy(pool, self.by_device) for pool in pools])

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

    def __init__(self, pool: Pool, by_device: Mapping[str, Holding]) -> None:
        self.pool = pool
        self._by_device = by_device
        self.taken = 0
        """Devices that a claim holds alone, and those that are not shared any more, of which claims hold shares."""
        self.shared = 0
        """Devices of which claims hold shares."""
        self.revision = 0
        """Another one whenever something is given or taken back."""
        self._budget: CounterBudget | None = None
        for name in by_device:
            self.mark(name)

    def mark(self, name: str) -> None:
        """Bring the sets of positions in line with what is held of one device."""
        mask = self.pool.named.get(name, 0)
        self._budget = None
        self.revision += 1
        holding = self._by_device.get(name)
        self.taken = self.taken & ~mask | (self._held_alone(mask, holding) if holding is not None else 0)
        self.shared = self.shared | mask if holding is not None and holding.shares else self.shared & ~mask

    def _held_alone(self, mask: int, holding: Holding) -> int:
        if holding.holders:
            return mask
        devices = self.pool.view.devices if holding.shares else ()
        return sum(1 << p for p in positions(mask) if devices and not devices[p].device.allow_multiple_allocations)

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
