"""What slices and claims say of the pools of a driver."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from dray.api.quantity import Quantity
from dray.api.resource import CounterSet, Device, ResourceClaim, ResourceSlice


class PoolDevice(msgspec.Struct, frozen=True):
    """A device, and the attribute that its slice says partitions are told apart by."""

    device: Device
    partition_attribute: str


class CountedPool(msgspec.Struct):
    """One pool, at its highest generation."""

    driver: str
    name: str
    generation: int
    expected_slices: int
    slices: int = 0
    nodes: set[str] = msgspec.field(default_factory=set)
    """Of all slices; empty text for one that is of no node."""
    devices: list[PoolDevice] = msgspec.field(default_factory=list)
    counters: list[CounterSet] = msgspec.field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether all slices are there."""
        return self.slices >= self.expected_slices

    def add(self, found: ResourceSlice) -> None:
        """Takes one slice of the pool's generation."""
        spec = found.spec
        self.slices += 1
        self.nodes.add(spec.node_name or "")
        attribute = spec.partition_type_attribute or ""
        self.devices += [PoolDevice(device, attribute) for device in spec.devices]
        self.counters += spec.shared_counters


class Use(msgspec.Struct):
    """What claims have of one pool. Who only looks (admin access) has nothing."""

    devices: set[str] = msgspec.field(default_factory=set)
    capacity: dict[str, Quantity] = msgspec.field(default_factory=dict)


def gather_pools(slices: Iterable[ResourceSlice]) -> dict[str, CountedPool]:
    """The pools by name, from the slices of one driver; slices of older generations do not count."""
    pools: dict[str, CountedPool] = {}
    for found in slices:
        spec = found.spec
        pool = pools.get(spec.pool.name)
        if pool is None or pool.generation < spec.pool.generation:
            pool = CountedPool(spec.driver, spec.pool.name, spec.pool.generation, spec.pool.resource_slice_count)
            pools[spec.pool.name] = pool
        if pool.generation == spec.pool.generation:
            pool.add(found)
    return pools


def gather_use(driver: str, claims: Iterable[ResourceClaim]) -> dict[str, Use]:
    """What claims have of the pools of a driver, by the pool's name."""
    uses: dict[str, Use] = {}
    for claim in claims:
        if claim.status.allocation is None:
            continue
        for result in claim.status.allocation.devices.results:
            if result.driver != driver or result.admin_access:
                continue
            use = uses.setdefault(result.pool, Use())
            use.devices.add(result.device)
            for name, amount in result.consumed_capacity.items():
                use.capacity[name] = use.capacity[name] + amount if name in use.capacity else amount
    return uses
