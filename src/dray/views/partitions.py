"""Devices that share counters as a tree: below a device are those that it can be had as instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from dray.api.resource import CounterSet, Device
from dray.scheduling.device_states import DeviceState

MOST: Final = 64
"""Devices in a tree; more are counted."""

Draw: TypeAlias = Mapping[tuple[str, str], int]
"""What is drawn from counters, in nanos, by counter set and counter."""


class Partition(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A device of the tree; `depth` says how many it is a part of, one in another."""

    name: str
    depth: int
    state: str
    is_own: bool
    """Whether it is the one that is looked at."""


class Partitions(msgspec.Struct, frozen=True):
    """All that share counters with a device, itself among them: each after what it is a part of. Empty if none do."""

    tree: tuple[Partition, ...] = ()
    more: int = 0


def partitions(device: Device, neighbours: Sequence[DeviceState], sets: Sequence[CounterSet]) -> Partitions:
    """The tree that a device is in."""
    own = _draw(device)
    sharing = [(state, draw) for state in neighbours if not own.keys().isdisjoint(draw := _draw(state.device.device))]
    if len(sharing) < 2:
        return Partitions()
    sizes = {(one.name, name): counter.value.nanos for one in sets for name, counter in one.counters.items()}
    if len(sharing) > MOST:  # the device itself stays, then what it is a part of and its parts
        near = [_is_part(draw, own, sizes) or _is_part(own, draw, sizes) for _, draw in sharing]
        order = sorted(range(len(sharing)), key=lambda at: (sharing[at][0].device.device is not device, not near[at]))
        shown = [sharing[at] for at in sorted(order[:MOST])]
    else:
        shown = sharing
    wholes = [[at for at, (_, draw) in enumerate(shown) if _is_part(drawn, draw, sizes)] for _, drawn in shown]
    below: dict[int | None, list[int]] = {}
    for at, each in enumerate(wholes):
        below.setdefault(max(each, key=lambda whole: len(wholes[whole]), default=None), []).append(at)
    tree: list[Partition] = []
    left = [(at, 0) for at in reversed(below.get(None, []))]
    while left:
        at, depth = left.pop()
        state = shown[at][0]
        is_own = state.device.device is device
        words = ", ".join(state.words)
        tree.append(Partition(name=state.device.id.device, depth=depth, state=words, is_own=is_own))
        left += [(one, depth + 1) for one in reversed(below.get(at, []))]
    return Partitions(tuple(tree), len(sharing) - len(shown))


def _is_part(part: Draw, whole: Draw, sizes: Draw) -> bool:
    """Whether one draws no more than the other from any counter, and too much for both to be had."""
    return (
        part != whole
        and all(whole.get(key, 0) >= amount for key, amount in part.items())
        and any(whole[key] + amount > sizes.get(key, 0) for key, amount in part.items())
    )


def _draw(device: Device) -> Draw:
    return {
        (use.counter_set, name): counter.value.nanos
        for use in device.consumes_counters
        for name, counter in use.counters.items()
        if counter.value.nanos > 0
    }
