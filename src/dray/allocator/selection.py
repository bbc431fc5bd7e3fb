"""Whether one device may serve a request, apart from its being free: selectors, tolerations, capacity policies.

The answer depends on the device and on the request's `Criteria` alone, so equal criteria of different claims share it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from dray.allocator import capacity
from dray.allocator.judge import Judge, Unsettled
from dray.allocator.results import OutOfBudget, StillJudging
from dray.api.quantity import Quantity
from dray.api.resource import DeviceToleration
from dray.api.resource.toleration import is_tolerated
from dray.tracker.view import EffectiveDevice, TrackedTaint

_BETWEEN_LOOKS: Final = 127
"""Devices that are examined before the clock is looked at."""


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
    judge: Judge


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
    unsettled: int = 0
    """Faulty only for now: the selectors are still being evaluated, or that was given up for lack of time."""


class Fault(Exception):
    """A device cannot be judged; `selector` is None if the capacity is the reason.

    With another device it may be possible, unless `is_everywhere`.
    """

    def __init__(self, message: str, selector: Selector | None, *, is_everywhere: bool = False) -> None:
        super().__init__(message)
        self.selector: Final = selector
        self.is_everywhere: Final = is_everywhere


def first_false(criteria: Criteria, device: EffectiveDevice) -> Selector | None:
    """The first selector that is false for the device, or None. Raises Fault where one fails before that.

    Raises StillJudging where that is not known yet, and OutOfBudget where it took too long to find out.
    """
    refuted = criteria.judge.judge(device)
    if refuted is None:
        return None
    if refuted.unsettled is Unsettled.BEING_JUDGED:
        raise StillJudging
    if refuted.unsettled is Unsettled.OUT_OF_TIME:
        raise OutOfBudget
    selector = criteria.selectors[refuted.number]
    if refuted.error is not None:
        if not refuted.compiles:
            raise Fault(refuted.error, selector, is_everywhere=True)
        raise Fault(f"on device {device.id}: {refuted.error}", selector)
    return selector


def untolerated_taints(criteria: Criteria, device: EffectiveDevice) -> Iterator[TrackedTaint]:
    """The taints that keep the request from the device (5055-47, 5055-50..52)."""
    return (t for t in device.taints if not is_tolerated(criteria.tolerations, t.taint))


def consumption(criteria: Criteria, device: EffectiveDevice) -> dict[str, Quantity] | None:
    """What the request would take of the device's capacity; None if it can never serve it. Raises Fault."""
    declared = device.device.capacity
    try:
        consumed = capacity.consume(criteria.capacity, declared)
    except capacity.CapacityFault as fault:
        raise Fault(f"checking capacity for device {device.id}: {fault}", None) from None
    return consumed if consumed is not None and capacity.fits(consumed, declared, {}) else None


def _is_limited(criteria: Criteria, device: EffectiveDevice) -> bool:
    """Whether capacity can decide: a request that names none takes the default or all there is, which fits."""
    if criteria.capacity:
        return True
    for declared in device.device.capacity.values():
        if declared.request_policy is not None or declared.value.nanos < 0:
            return True
    return False


class Examined:
    """Devices of which so many, the first ones, have been sorted by what criteria say of them."""

    __slots__ = ("faulty", "overflowing", "position", "selected", "unsettled", "usable")

    def __init__(self) -> None:
        self.position = self.selected = self.usable = self.faulty = self.overflowing = self.unsettled = 0

    def candidates(self, devices: int) -> Candidates:
        """What is known of them; those that were not looked at are unsettled."""
        rest = (1 << devices) - (1 << self.position)
        return Candidates(self.selected, self.usable, self.faulty | rest, self.overflowing, self.unsettled | rest)


def examine(criteria: Criteria, devices: Sequence[EffectiveDevice], begun: Examined | None = None) -> Examined:
    """Sort devices by what the criteria say of them, or go on with it, until all are or there is no time now."""
    found = begun or Examined()
    judge = criteria.judge.judge
    must_wait = criteria.judge.must_wait
    if must_wait():
        return found
    rest = devices if not found.position else devices[found.position :]
    bit = 1 << found.position
    for number, device in enumerate(rest, found.position):
        refuted = judge(device)
        if refuted is None:
            fault, allowed = _judge_capacity(criteria, device)
            if fault:
                found.overflowing |= bit
            elif allowed:
                found.selected |= bit
                if not device.taints or next(untolerated_taints(criteria, device), None) is None:
                    found.usable |= bit
        elif refuted.error is not None:
            found.faulty |= bit
        elif refuted.unsettled is not None:
            if must_wait():
                found.position = number
                return found
            found.faulty |= bit
            found.unsettled |= bit
        bit <<= 1
        if number & _BETWEEN_LOOKS == _BETWEEN_LOOKS and must_wait():
            found.position = number + 1
            return found
    found.position = len(devices)
    return found


def _judge_capacity(criteria: Criteria, device: EffectiveDevice) -> tuple[bool, bool]:
    """Whether the capacity cannot be computed, and whether it allows the request."""
    if not _is_limited(criteria, device):
        return False, True
    try:
        return False, consumption(criteria, device) is not None
    except Fault:
        return True, False
