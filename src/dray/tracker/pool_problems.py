"""Why a pool cannot be used: what is missing in its slices, or contradicts itself (SVS-50)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from dray.api.resource import CounterSet, Device, ResourceSliceSpec
from dray.tracker.view import NO_NODES, EffectiveDevice


class PoolProblem(NamedTuple):
    """A reason not to use a pool. An incomplete pool is one that the driver is still publishing."""

    message: str
    incomplete: bool = False


def find_problem(
    pool: str,
    specs: list[ResourceSliceSpec],
    devices: tuple[EffectiveDevice, ...],
    counter_sets: tuple[CounterSet, ...],
    consumers: Iterable[Device],
) -> PoolProblem | None:
    """The first problem of a pool, or None. `consumers` are its devices that consume counters."""
    return (
        _incompleteness(pool, specs)
        or _duplicate_device(pool, devices)
        or _duplicate_counter_set(pool, counter_sets)
        or _unknown_counter(pool, counter_sets, consumers)
    )


def _incompleteness(pool: str, specs: list[ResourceSliceSpec]) -> PoolProblem | None:
    """Every slice says how many the pool has; all of them count, whatever they contain (X-04)."""
    for spec in specs:
        wanted = spec.pool.resource_slice_count
        if wanted != len(specs):
            message = (
                f"pool {pool} is incomplete: {len(specs)} of {wanted} slices of generation "
                f"{spec.pool.generation} are there"
            )
            return PoolProblem(message, incomplete=True)
    return None


def _duplicate_device(pool: str, devices: tuple[EffectiveDevice, ...]) -> PoolProblem | None:
    """One name may stand for different devices only where no node can reach both."""
    if len({device.id.device for device in devices}) == len(devices):
        return None
    seen: dict[str, dict[str | None, EffectiveDevice]] = {}
    for device in devices:
        if device.access == NO_NODES:
            continue
        # By node name; None stands for any number of nodes.
        others = seen.setdefault(device.id.device, {})
        node = device.access.node_name
        other = next(iter(others.values()), None) if node is None else others.get(node) or others.get(None)
        if other is not None:
            return PoolProblem(
                f"pool {pool} is invalid: device {device.id.device} is published twice, "
                f"in {_slices(other.slice_name, device.slice_name)}"
            )
        others[node] = device
    return None


def _slices(one: str, other: str) -> str:
    return f"slice {one}" if one == other else f"slices {one} and {other}"


def _duplicate_counter_set(pool: str, counter_sets: tuple[CounterSet, ...]) -> PoolProblem | None:
    """Counter sets have unique names."""
    seen: set[str] = set()
    for counter_set in counter_sets:
        if counter_set.name in seen:
            return PoolProblem(f"pool {pool} is invalid: counter set {counter_set.name} is published twice")
        seen.add(counter_set.name)
    return None


def _unknown_counter(
    pool: str, counter_sets: tuple[CounterSet, ...], consumers: Iterable[Device]
) -> PoolProblem | None:
    """Devices consume only counters that exist."""
    known = {counter_set.name: counter_set for counter_set in counter_sets}
    for device in consumers:
        for consumed in device.consumes_counters:
            found = known.get(consumed.counter_set)
            if found is None:
                return PoolProblem(
                    f"pool {pool} is invalid: device {device.name} consumes from counter set "
                    f"{consumed.counter_set}, which no slice has"
                )
            missing = sorted(consumed.counters.keys() - found.counters.keys())
            if missing:
                return PoolProblem(
                    f"pool {pool} is invalid: device {device.name} consumes counter {missing[0]}, "
                    f"which counter set {consumed.counter_set} does not have"
                )
    return None
