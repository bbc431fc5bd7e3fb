"""Pools and the slices they are published as. Pure functions: devices in, slice specs out.

A pool is, in this order: slices with shared counters, slices with devices, slices with taints. Taints have two forms.
In slices of their own (KEP-5055) a taint comes and goes without touching the devices; servers that do not know those
get taints at the devices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from dray.api.resource import CounterSet as ApiCounterSet
from dray.api.resource import Device as ApiDevice
from dray.api.resource import ResourcePool, ResourceSliceSpec, SliceDeviceTaint
from dray.api.resource.slice import DEVICES_PER_SLICE, DEVICES_PER_SLICE_WITH_TAINTS_OR_COUNTERS
from dray.api.resource.taint import TAINTS_PER_SLICE
from dray.driver.devices import CounterSet, Device, counter_set_to_api, to_api
from dray.driver.errors import DriverError

COUNTER_SETS_PER_SLICE: Final = 8

T = TypeVar("T")


class TaintForm(Enum):
    """Where taints are published."""

    SLICE = "in slices of their own"
    DEVICE = "at the devices"


class Pool(msgspec.Struct, frozen=True):
    """Everything that a driver publishes under one pool name."""

    name: str
    devices: tuple[ApiDevice, ...] = ()
    taints: tuple[SliceDeviceTaint, ...] = ()
    counters: tuple[ApiCounterSet, ...] = ()


def group(devices: Iterable[Device], counters: Iterable[CounterSet], default_pool: str) -> dict[str, Pool]:
    """Pools by name; the default one is always there, so that an empty pool says that the driver is up (5055-05).

    Raises DriverError for devices that cannot be published, or that have the name of another in their pool.
    """
    found: dict[str, dict[str, ApiDevice]] = {default_pool: {}}
    taints: dict[str, list[SliceDeviceTaint]] = {}
    sets: dict[str, list[ApiCounterSet]] = {}
    for device in devices:
        name = device.pool or default_pool
        pool = found.setdefault(name, {})
        if device.name in pool:
            raise DriverError(f'device "{device.name}" is there twice in pool "{name}"')
        pool[device.name] = to_api(device)
        marks = (SliceDeviceTaint(device=device.name, taint=taint) for taint in device.taints or ())
        taints.setdefault(name, []).extend(marks)
    for counter_set in counters:
        name = counter_set.pool or default_pool
        found.setdefault(name, {})
        sets.setdefault(name, []).append(counter_set_to_api(counter_set))
    return {
        name: Pool(name, tuple(pool.values()), tuple(taints.get(name, ())), tuple(sets.get(name, ())))
        for name, pool in found.items()
    }


def slices_of(
    pool: Pool, base: ResourceSliceSpec, form: TaintForm, *, with_taint_slice: bool
) -> list[ResourceSliceSpec]:
    """The specs of a pool's slices, without generation. `base` says whose and where they are."""
    if form is TaintForm.DEVICE:
        pool = replace(pool, devices=tuple(_tainted(pool)), taints=())
        with_taint_slice = False
    specs = [replace(base, shared_counters=part) for part in _chunks(pool.counters, COUNTER_SETS_PER_SLICE)]
    specs += [replace(base, devices=part) for part in _device_chunks(pool.devices)]
    specs += [replace(base, taints=part) for part in _chunks(pool.taints, TAINTS_PER_SLICE)]
    if with_taint_slice and not pool.taints:
        specs.append(base)
    return [replace(spec, pool=ResourcePool(name=pool.name, resource_slice_count=len(specs))) for spec in specs]


def _tainted(pool: Pool) -> Iterator[ApiDevice]:
    for device in pool.devices:
        taints = tuple(entry.taint for entry in pool.taints if entry.device == device.name)
        yield replace(device, taints=taints) if taints else device


def _device_chunks(devices: Sequence[ApiDevice]) -> list[tuple[ApiDevice, ...]]:
    limit = DEVICES_PER_SLICE_WITH_TAINTS_OR_COUNTERS if any(map(_is_advanced, devices)) else DEVICES_PER_SLICE
    # With a taint slice alone a pool would have no slice for devices; an empty one says that there are none.
    return _chunks(devices, limit) or [()]


def _is_advanced(device: ApiDevice) -> bool:
    """Whether a slice with this device may hold fewer of them (SVS-03)."""
    lists = (value.ints or value.bools or value.strings or value.versions for value in device.attributes.values())
    return bool(device.taints or device.consumes_counters or any(lists))


def _chunks(items: Sequence[T], size: int) -> list[tuple[T, ...]]:
    return [tuple(items[start : start + size]) for start in range(0, len(items), size)]
