"""What must be written so that the API server has a pool as the driver wants it. Pure: slices in, writes out.

The rules of pools: every change gets a new generation in all slices of the pool (4381-09), except a change of taints
within one slice while the number of slices stays (5055-76). Consumers use only the highest generation, and only once
all of its slices are there, so they see the old pool or the new one, never a mix.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from dray.api.resource import DeviceTaint, ResourcePool, ResourceSlice, ResourceSliceSpec


class SlicePlan(msgspec.Struct, frozen=True):
    """Writes, in order: updates and creates of the new state, then deletes of what is left of the old."""

    update: tuple[tuple[ResourceSlice, ResourceSliceSpec], ...] = ()
    create: tuple[ResourceSliceSpec, ...] = ()
    delete: tuple[ResourceSlice, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.update or self.create or self.delete)


def plan(wanted: Sequence[ResourceSliceSpec], current: Sequence[ResourceSlice], last_generation: int = 0) -> SlicePlan:
    """The writes for one pool. `last_generation` is the highest that this driver has used, for pools that are gone."""
    newest = max((found.spec.pool.generation for found in current), default=0)
    live = [found for found in current if found.spec.pool.generation == newest]
    stale = tuple(found for found in current if found.spec.pool.generation != newest)
    wanted = keep_times(wanted, live)
    missing, unused = _compare(wanted, live)
    counted = all(found.spec.pool.resource_slice_count == len(wanted) for found in live)
    if counted and len(live) == len(wanted):
        if not missing:
            return SlicePlan(delete=stale)
        if len(missing) == 1 and _is_about_taints(missing[0]) and _is_about_taints(unused[0].spec):
            return SlicePlan(update=((unused[0], _with_generation(missing[0], newest)),), delete=stale)
    generation = max(newest, last_generation) + 1
    specs = [_with_generation(spec, generation) for spec in wanted]
    live.sort(key=_role)  # so that a slice stays what it was, as far as that goes
    pairs = tuple(zip(live, specs, strict=False))
    return SlicePlan(update=pairs, create=tuple(specs[len(pairs) :]), delete=(*live[len(pairs) :], *stale))


def keep_times(wanted: Iterable[ResourceSliceSpec], stored: Iterable[ResourceSlice]) -> list[ResourceSliceSpec]:
    """Taints that are there already keep the time at which they came; toleration counts from then."""
    times: dict[tuple[str, str, str, str], DeviceTaint] = {}
    for found in stored:
        for entry in found.spec.taints:
            times[_key(entry.device, entry.taint)] = entry.taint
        for device in found.spec.devices:
            for taint in device.taints:
                times[_key(device.name, taint)] = taint
    return [_with_times(spec, times) for spec in wanted] if times else list(wanted)


def content(spec: ResourceSliceSpec) -> ResourceSliceSpec:
    """A spec without its place in the pool's history."""
    return replace(spec, pool=ResourcePool(name=spec.pool.name))


def _compare(
    wanted: Iterable[ResourceSliceSpec], live: Iterable[ResourceSlice]
) -> tuple[list[ResourceSliceSpec], list[ResourceSlice]]:
    """What is wanted and not there, and what is there and not wanted."""
    unused = list(live)
    missing = []
    for spec in wanted:
        match = next((found for found in unused if content(found.spec) == content(spec)), None)
        if match is None:
            missing.append(spec)
        else:
            unused.remove(match)
    return missing, unused


def _is_about_taints(spec: ResourceSliceSpec) -> bool:
    return not spec.devices and not spec.shared_counters


def _role(found: ResourceSlice) -> tuple[int, str]:
    """Counters, devices, taints: the order in which a pool is wanted."""
    spec = found.spec
    return 0 if spec.shared_counters else 1 if spec.devices else 2, found.metadata.name


def _with_generation(spec: ResourceSliceSpec, generation: int) -> ResourceSliceSpec:
    return replace(spec, pool=replace(spec.pool, generation=generation))


def _key(device: str, taint: DeviceTaint) -> tuple[str, str, str, str]:
    return device, taint.key, taint.value, taint.effect


def _with_times(spec: ResourceSliceSpec, times: dict[tuple[str, str, str, str], DeviceTaint]) -> ResourceSliceSpec:
    def timed(device: str, taint: DeviceTaint) -> DeviceTaint:
        known = times.get(_key(device, taint))
        if known is None or taint.time_added is not None:
            return taint
        return replace(taint, time_added=known.time_added)

    taints = tuple(replace(entry, taint=timed(entry.device, entry.taint)) for entry in spec.taints)
    devices = spec.devices
    if any(device.taints for device in devices):
        devices = tuple(
            replace(device, taints=tuple(timed(device.name, taint) for taint in device.taints)) for device in devices
        )
    return replace(spec, taints=taints, devices=devices)
