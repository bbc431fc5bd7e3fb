"""Shared counters (partitionable devices): what devices of a pool take from a common budget.

Counters of a pool are numbered, so that amounts are plain lists of integers in nano units. A device also joins the
compatibility groups of the counter sets that it draws from: devices that draw from one set at the same time must have a
group in common, and a device without groups only goes with others without.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from dray.api.resource import CounterSet
from dray.tracker.view import EffectiveDevice

Groups: TypeAlias = Mapping[str, frozenset[str]]
"""Counter set → the groups that all devices drawing from it share; an empty set: they declared none."""

Amounts: TypeAlias = tuple[int, ...]

_CONFLICT: Final = frozenset({""})
"""Of a set whose devices were allocated although they do not go together: no device has the empty group."""


class Draw(msgspec.Struct, frozen=True, gc=False):
    """What one device takes: amounts by counter number, and its groups by counter set."""

    amounts: tuple[tuple[int, int], ...]
    groups: tuple[tuple[str, frozenset[str]], ...]


class CounterBudget(msgspec.Struct, frozen=True):
    """What is left of a pool's counters, and the groups of the devices that draw from them."""

    left: Amounts
    groups: Groups

    def take(self, draw: Draw) -> CounterBudget | None:
        """What is left after one more device; None if it does not go with the others, or a counter is short.

        Any counter of the pool that is overdrawn blocks, not only those that the device draws from: that happens
        when a driver changed a pool under allocated devices.
        """
        groups = join_groups(self.groups, draw)
        if groups is None:
            return None
        left = list(self.left)
        for number, amount in draw.amounts:
            left[number] -= amount
        return CounterBudget(tuple(left), groups) if min(left, default=0) >= 0 else None


class CounterTable(msgspec.Struct, frozen=True):
    """The counters of a pool: their names and sizes, and the draw of each device by position."""

    names: tuple[tuple[str, str], ...]
    sizes: Amounts
    draws: tuple[Draw | None, ...]

    def budget(self, allocated: Iterable[int]) -> CounterBudget:
        """What the devices at the `allocated` positions leave; amounts may be negative."""
        left = list(self.sizes)
        groups: dict[str, frozenset[str]] = {}
        for position in allocated:
            draw = self.draws[position]
            if draw is None:
                continue
            for number, amount in draw.amounts:
                left[number] -= amount
            for counter_set, joined in draw.groups:
                groups[counter_set] = _fold(groups.get(counter_set), joined)
        return CounterBudget(tuple(left), groups)


def _fold(present: frozenset[str] | None, joined: frozenset[str]) -> frozenset[str]:
    if present is None:
        return joined
    return (present & joined) or _CONFLICT if present and joined else present


def join_groups(present: Groups, draw: Draw) -> Groups | None:
    """The groups after one more device, or None if it has none in common with those that are there."""
    joined = dict(present)
    for counter_set, groups in draw.groups:
        current = joined.get(counter_set)
        if current is None:
            joined[counter_set] = groups
        elif bool(current) != bool(groups):
            return None
        elif groups:
            common = current & groups
            if not common:
                return None
            joined[counter_set] = common
    return joined


def read_counters(counter_sets: Sequence[CounterSet], devices: Sequence[EffectiveDevice]) -> CounterTable | str | None:
    """The table of a pool; None if no device draws from a counter; a text if the pool is invalid."""
    if not counter_sets and not any(device.device.consumes_counters for device in devices):
        return None
    numbers: dict[tuple[str, str], int] = {}
    sizes: list[int] = []
    names_of_sets: set[str] = set()
    for counter_set in counter_sets:
        if counter_set.name in names_of_sets:
            return f"duplicate counter set name {counter_set.name}"
        names_of_sets.add(counter_set.name)
        for name, counter in counter_set.counters.items():
            numbers[counter_set.name, name] = len(sizes)
            sizes.append(counter.value.nanos)
    draws: list[Draw | None] = []
    for device in devices:
        draw = _read_draw(device, numbers, names_of_sets)
        if isinstance(draw, str):
            return draw
        draws.append(draw)
    return CounterTable(tuple(numbers), tuple(sizes), tuple(draws))


def _read_draw(
    device: EffectiveDevice, numbers: Mapping[tuple[str, str], int], names_of_sets: set[str]
) -> Draw | str | None:
    if not device.device.consumes_counters:
        return None
    amounts: dict[int, int] = {}
    groups = []
    for consumption in device.device.consumes_counters:
        if consumption.counter_set not in names_of_sets:
            return f"counter set {consumption.counter_set} not found"
        for name, counter in consumption.counters.items():
            number = numbers.get((consumption.counter_set, name))
            if number is None:
                return f"counter {name} not found in counter set {consumption.counter_set}"
            amounts[number] = amounts.get(number, 0) + counter.value.nanos
        groups.append((consumption.counter_set, frozenset(consumption.compatibility_groups)))
    return Draw(tuple(sorted(amounts.items())), tuple(groups))
