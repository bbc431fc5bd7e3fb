"""Whether one device may serve a request, apart from its being free: selectors, tolerations, capacity policies.

The answer depends on the device and on the request's `Criteria` alone, so equal criteria of different claims share it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from dray.allocator import capacity
from dray.allocator.judge import SelectorFault, judge_of
from dray.api.quantity import Quantity
from dray.api.resource import DeviceToleration
from dray.api.resource.toleration import is_tolerated
from dray.tracker.view import EffectiveDevice, TrackedTaint


class Selector(msgspec.Struct, frozen=True, gc=False):
    """A CEL selector with its place: the `index`-th of a class, or of the request if there is no class name."""

    expression: str
    index: int
    class_name: str | None = None


class Criteria(msgspec.Struct, frozen=True, eq=False):
    """What a device must fulfil: all selectors, the class's first, then tolerations and capacity.

    Compared by identity: equal criteria are made one object when claims are read.
    """

    selectors: tuple[Selector, ...]
    tolerations: tuple[DeviceToleration, ...]
    capacity: dict[str, Quantity]


class Candidates(NamedTuple):
    """Devices by what the criteria say of them, as sets of positions (bit i: the device at position i)."""

    selected: int
    """Selectors hold and the capacity policies allow it. Taints do not count, because `All` must not skip a
    tainted device silently."""
    usable: int
    """Selected, and every taint is tolerated."""
    faulty: int
    """A selector fails on the device."""
    overflowing: int
    """Selected by the selectors, but the capacity cannot be computed."""


class Fault(Exception):
    """A device cannot be judged; `selector` is None if the capacity is the reason."""

    def __init__(self, message: str, selector: Selector | None) -> None:
        super().__init__(message)
        self.selector: Final = selector


def holds(selector: Selector, device: EffectiveDevice) -> bool:
    """Whether a selector is true for a device. Raises Fault."""
    try:
        return judge_of(selector.expression).holds(device)
    except SelectorFault as fault:
        raise Fault(str(fault), selector) from None


def first_false(criteria: Criteria, device: EffectiveDevice) -> Selector | None:
    """The first selector that is false for the device, or None. Raises Fault where one fails before that."""
    return next((selector for selector in criteria.selectors if not holds(selector, device)), None)


def untolerated_taint(criteria: Criteria, device: EffectiveDevice) -> TrackedTaint | None:
    """The first taint that keeps the request from the device (5055-47, 5055-50..52)."""
    return next((t for t in device.taints if not is_tolerated(criteria.tolerations, t.taint)), None)


def consumption(criteria: Criteria, device: EffectiveDevice) -> dict[str, Quantity] | None:
    """What the request would take of the device's capacity; None if it can never serve it. Raises Fault."""
    declared = device.device.capacity
    try:
        consumed = capacity.consume(criteria.capacity, declared)
    except capacity.CapacityFault as fault:
        raise Fault(f"checking capacity for device {device.id}: {fault}", None) from None
    return consumed if consumed is not None and capacity.fits(consumed, declared, {}) else None


def examine(criteria: Criteria, devices: Sequence[EffectiveDevice]) -> Candidates:
    """Sort devices by what the criteria say of them."""
    selected = usable = faulty = overflowing = 0
    for position, device in enumerate(devices):
        bit = 1 << position
        try:
            if first_false(criteria, device) is not None:
                continue
            if (criteria.capacity or device.device.capacity) and consumption(criteria, device) is None:
                continue
        except Fault as fault:
            if fault.selector is None:
                overflowing |= bit
            else:
                faulty |= bit
            continue
        selected |= bit
        if not device.taints or untolerated_taint(criteria, device) is None:
            usable |= bit
    return Candidates(selected, usable, faulty, overflowing)
