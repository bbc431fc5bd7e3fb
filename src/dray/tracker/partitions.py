"""Taints that reach the partitions of a device, where somebody asked for it.

A partition draws on counters of its parent: device P reaches device D if, for every counter that D draws on, P draws at
least as much, and so much that both cannot be in use at once. Two halves of a device do not reach each other, unless
they draw on counters that are too small for both.

    counters of gpu-0: slice-0: 1, slice-1: 1        whole ─┬─▶ half-0 (slice-0)
    whole: slice-0, slice-1                                 └─▶ half-1 (slice-1)

A rule asks for it by an annotation; a driver, for the taints that it publishes, by an attribute of the parent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from dray.api.resource import CounterSet, Device
from dray.tracker.view import TrackedTaint

SPREADS: Final = "dray.dev/taintPartitions"
"""A boolean attribute of a device."""

CounterKey: TypeAlias = tuple[str, str]
Draw: TypeAlias = Mapping[CounterKey, int]
Taints: TypeAlias = tuple[TrackedTaint, ...]


class _Source(NamedTuple):
    """A device with taints that reach its partitions."""

    device: Device
    draw: Draw
    taints: Taints


def spreading(device: Device, taints: Taints) -> Taints:
    """Those taints of a device that reach its partitions."""
    if not taints or not device.consumes_counters:
        return ()
    attribute = device.attributes.get(SPREADS)
    published_too = attribute is not None and attribute.bool_value is True
    return tuple([taint for taint in taints if (published_too if taint.rule is None else taint.spreads)])


def with_inherited(
    slices: Mapping[str, tuple[Sequence[Device], list[Taints]]], counter_sets: Iterable[CounterSet]
) -> dict[str, list[Taints]]:
    """The taints at each position of each slice of a pool: the device's own, then those that reach it, each once."""
    sources = [
        _Source(device, _draw(device), found)
        for devices, taints in slices.values()
        for device, own in zip(devices, taints, strict=True)
        if (found := spreading(device, own))
    ]
    sizes = {(one.name, name): counter.value.nanos for one in counter_sets for name, counter in one.counters.items()}
    by_counter: dict[CounterKey, list[_Source]] = {}
    for source in sources:
        for counter in source.draw:
            by_counter.setdefault(counter, []).append(source)
    return {
        name: [_inherit(device, own, by_counter, sizes) for device, own in zip(devices, taints, strict=True)]
        for name, (devices, taints) in slices.items()
    }


def _inherit(
    device: Device, own: Taints, by_counter: Mapping[CounterKey, Sequence[_Source]], sizes: Mapping[CounterKey, int]
) -> Taints:
    draw = _draw(device)
    if not draw:
        return own
    # A parent draws on all counters of its partition, so any one of them leads to it.
    found = {taint.id: taint for taint in own}
    for source in by_counter.get(next(iter(draw)), ()):
        if source.device is not device and _reaches(source.draw, draw, sizes):
            for taint in source.taints:
                found.setdefault(taint.id, taint)
    return tuple(found.values()) if len(found) != len(own) else own


def _reaches(parent: Draw, partition: Draw, sizes: Mapping[CounterKey, int]) -> bool:
    for counter, amount in partition.items():
        taken, size = parent.get(counter, 0), sizes.get(counter)
        if size is None or taken < amount or taken + amount <= size:
            return False
    return True


def _draw(device: Device) -> dict[CounterKey, int]:
    draw: dict[CounterKey, int] = {}
    for consumption in device.consumes_counters:
        for name, counter in consumption.counters.items():
            if counter.value.nanos > 0:
                draw[consumption.counter_set, name] = counter.value.nanos
    return draw
