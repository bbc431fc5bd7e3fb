"""Partitions and shared devices of a pool: how many more there can be of each.

A view that cannot be made is left out, and the pool says why; how many devices there are is said all the same.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from dray.api.quantity import Quantity
from dray.api.resource import Device, DeviceCounterConsumption
from dray.api.resource.pool_status import PartitionTypeStatus, ShareableCapacityStatus, ShareableSummaryStatus
from dray.controllers.resource_pool_status.pools import CountedPool, Use

MOST_ENTRIES = 32
"""What a summary may list."""

_Counters = dict[tuple[str, str], Quantity]
"""What is left, by counter set and counter."""


class ViewError(Exception):
    """A view cannot be made; the text begins with a word that programs can go by."""


class _Partition(msgspec.Struct):
    """Devices of one type."""

    cost: DeviceCost
    total: int = 0
    unused: list[Device] = msgspec.field(default_factory=list)


DeviceCost = frozenset[tuple[str, str, Quantity]]


def partitions(pool: CountedPool, use: Use, default_attribute: str) -> tuple[PartitionTypeStatus, ...]:
    """Partitions by attribute and type. Raises ViewError.

    The attribute is what a device's own slice names; the default is for pools none of whose slices names one.
    """
    if any(found.partition_attribute for found in pool.devices):
        default_attribute = ""
    named = [(found.device, found.partition_attribute or default_attribute) for found in pool.devices]
    named = [(device, attribute) for device, attribute in named if attribute]
    if not named:
        return ()
    if not pool.counters:
        raise ViewError(
            f"PartitionTypeMissing: pool {pool.driver}/{pool.name} declares partitionTypeAttribute "
            "but publishes no sharedCounters"
        )
    groups = _grouped(pool, use, [(device, attribute) for device, attribute in named if device.consumes_counters])
    if len(groups) > MOST_ENTRIES:
        raise ViewError(
            f"PartitionSummaryOverCap: pool {pool.driver}/{pool.name} has {len(groups)} partition types, "
            f"exceeding the maximum of {MOST_ENTRIES}"
        )
    left = _left(pool, use)
    return tuple(
        PartitionTypeStatus(attribute=attribute, type=kind, total=group.total, allocatable=_fitting(group.unused, left))
        for (attribute, kind), group in sorted(groups.items())
    )


def _grouped(pool: CountedPool, use: Use, named: list[tuple[Device, str]]) -> dict[tuple[str, str], _Partition]:
    groups: dict[tuple[str, str], _Partition] = {}
    for device, attribute in named:
        kind = _type(pool.driver, device, attribute)
        if kind is None:
            raise ViewError(
                f'PartitionTypeMissing: device "{device.name}" in pool {pool.driver}/{pool.name} '
                f'does not carry partition type attribute "{attribute}"'
            )
        cost = _cost(device.consumes_counters)
        group = groups.setdefault((attribute, kind), _Partition(cost))
        if group.cost != cost:
            raise ViewError(
                f'PartitionCostMismatch: devices of partition type "{kind}" in pool {pool.driver}/{pool.name} '
                "consume different counters"
            )
        group.total += 1
        if device.name not in use.devices:
            group.unused.append(device)
    return groups


def _type(driver: str, device: Device, attribute: str) -> str | None:
    """The value of the attribute, which may be written without the driver's own domain; only text tells types apart."""
    bare = attribute.removeprefix(f"{driver}/")
    found = device.attributes.get(attribute) or device.attributes.get(bare)
    return None if found is None else found.string


def _cost(consumed: Iterable[DeviceCounterConsumption]) -> DeviceCost:
    return frozenset(
        (taken.counter_set, name, counter.value) for taken in consumed for name, counter in taken.counters.items()
    )


def _left(pool: CountedPool, use: Use) -> _Counters:
    """What devices in use, each counted once, leave of the counters."""
    left = {(found.name, name): counter.value for found in pool.counters for name, counter in found.counters.items()}
    for found in pool.devices:
        if found.device.name in use.devices:
            _take(found.device, left)
    return left


def _take(device: Device, left: _Counters) -> None:
    for counter_set, name, amount in _cost(device.consumes_counters):
        if (counter_set, name) in left:
            left[counter_set, name] -= amount


def _fitting(unused: list[Device], left: _Counters) -> int:
    """How many devices of one type fit in what is left, were there no other types."""
    left = dict(left)
    fitting = 0
    for device in unused:
        cost = _cost(device.consumes_counters)
        if all((of, name) in left and left[of, name] >= amount for of, name, amount in cost):
            fitting += 1
            _take(device, left)
    return fitting


def shared(pool: CountedPool, use: Use) -> ShareableSummaryStatus | None:
    """The devices that several claims may have at once; None if there are none. Raises ViewError."""
    devices = [found.device for found in pool.devices if found.device.allow_multiple_allocations]
    if not devices:
        return None
    totals: dict[str, Quantity] = {}
    for device in devices:
        for name, capacity in device.capacity.items():
            totals[name] = totals[name] + capacity.value if name in totals else capacity.value
    if len(totals) > MOST_ENTRIES:
        raise ViewError(
            f"ShareableSummaryOverCap: pool {pool.driver}/{pool.name} has {len(totals)} shareable capacity keys, "
            f"exceeding the maximum of {MOST_ENTRIES}"
        )
    used = sum(device.name in use.devices for device in devices)
    return ShareableSummaryStatus(
        fully_available_devices=len(devices) - used,
        partially_available_devices=used,
        capacity=tuple(_capacity(name, total, use) for name, total in sorted(totals.items())),
    )


def _capacity(name: str, total: Quantity, use: Use) -> ShareableCapacityStatus:
    nothing = Quantity.parse("0")
    consumed = use.capacity.get(name, nothing)
    return ShareableCapacityStatus(name=name, total=total, consumed=consumed, available=max(total - consumed, nothing))
