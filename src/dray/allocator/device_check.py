"""The first check that a device fails for a request, looked at by itself."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from dray.allocator.capacity import first_misfit
from dray.allocator.inventory import Inventory
from dray.allocator.judge import conditions_of
from dray.allocator.layout import Layout, Value
from dray.allocator.obstacles import amount_text, counter_obstacle
from dray.allocator.reasons import (
    AnyCheck,
    AttributeMissing,
    CapacityShort,
    CapacityUnsuitable,
    InUse,
    OutOfReach,
    SelectorFailed,
    SelectorFalse,
    Tainted,
)
from dray.allocator.requests import Alternative, Claim
from dray.allocator.selection import Fault, Selector, consumption, first_false, untolerated_taints
from dray.api.quantity import Quantity
from dray.api.resource import DeviceCapacity
from dray.api.semver import Semver
from dray.tracker.view import EffectiveDevice


def value_texts(values: Iterable[Value]) -> tuple[str, ...]:
    """Attribute values for people."""
    return tuple(sorted(str(value).lower() if kind == "bool" else str(value) for kind, value in values))


Told = dict[tuple[Selector, Hashable], SelectorFalse]
"""Why a selector is false for devices with a look, for as long as one explanation takes."""


class DeviceChecker:
    """Checks the devices of a layout for one alternative."""

    def __init__(
        self, inventory: Inventory, layout: Layout, wanted: Claim, alternative: Alternative, told: Told
    ) -> None:
        self._inventory = inventory
        self._layout = layout
        self._wanted = wanted
        self._alternative = alternative
        self._told = told

    def check(self, position: int) -> AnyCheck | None:
        """The first check that fails, None if the device could be taken."""
        device = self._layout.devices[position]
        return (
            self._check_selectors(device)
            or self._check_reach(position)
            or self._check_policy(device)
            or self._check_taints(device)
            or self._check_holders(device)
            or self._check_counters(position)
            or self._check_capacity(position, device)
            or self._check_attributes(position)
        )

    def _check_selectors(self, device: EffectiveDevice) -> AnyCheck | None:
        try:
            selector = first_false(self._alternative.criteria, device)
        except Fault as fault:
            failed = fault.selector
            assert failed is not None, "only selectors are evaluated here"
            return SelectorFailed(
                class_name=failed.class_name, index=failed.index, expression=failed.expression, message=str(fault)
            )
        return None if selector is None else self._why_false(selector, device)

    def _why_false(self, selector: Selector, device: EffectiveDevice) -> SelectorFalse:
        """Said once for all devices that look the same: there are thousands of them, of a few kinds."""
        look = self._alternative.criteria.judge.look_of(device)
        if look is None:
            return _selector_false(selector, device)
        key = (selector, look)
        if (told := self._told.get(key)) is None:
            told = self._told[key] = _selector_false(selector, device)
        return told

    def _check_reach(self, position: int) -> AnyCheck | None:
        number = self._layout.segment_of[position]
        segment, _ = self._layout.segments[number]
        is_eligible = segment.eligible >> position - self._layout.offsets[number] & 1
        return None if is_eligible else OutOfReach()

    def _check_policy(self, device: EffectiveDevice) -> AnyCheck | None:
        criteria = self._alternative.criteria
        declared = device.device.capacity
        try:
            if consumption(criteria, device) is not None:
                return None
        except Fault as fault:
            name = next(iter(criteria.capacity or declared), "")
            return _unsuitable(name, criteria.capacity, declared, message=str(fault))
        return _unsuitable(first_misfit(criteria.capacity, declared), criteria.capacity, declared)

    def _check_taints(self, device: EffectiveDevice) -> AnyCheck | None:
        found = list(untolerated_taints(self._alternative.criteria, device))
        if not found:
            return None
        first, taint = found[0], found[0].taint
        return Tainted(
            key=taint.key,
            value=taint.value,
            effect=taint.effect,
            rule=first.rule,
            time_added=None if taint.time_added is None else str(taint.time_added),
            more_rules=tuple(sorted({one.rule for one in found if one.rule} - {first.rule})),
            by_driver_too=first.rule is not None and any(one.rule is None for one in found),
        )

    def _check_holders(self, device: EffectiveDevice) -> AnyCheck | None:
        holding = self._inventory.holding(device.id)
        if self._alternative.admin or holding is None or not holding.holders:
            return None
        return InUse(claims=tuple(sorted(holding.holders)))

    def _check_counters(self, position: int) -> AnyCheck | None:
        layout = self._layout
        bit = 1 << position
        if not bit & layout.metered or bit & layout.shareable & layout.shared():
            return None
        number = layout.segment_of[position]
        segment, occupancy = layout.segments[number]
        return counter_obstacle(occupancy, segment.pool_position(position - layout.offsets[number]))

    def _check_capacity(self, position: int, device: EffectiveDevice) -> AnyCheck | None:
        consumed = consumption(self._alternative.criteria, device) or {}
        taken = self._layout.consumed(position)
        for name, amount in consumed.items():
            left = device.device.capacity[name].value.nanos - taken.get(name, 0)
            if taken and amount.nanos > left:
                holding = self._inventory.holding(device.id)
                return CapacityShort(
                    capacity=name,
                    needed=str(amount),
                    left=amount_text(left),
                    short_by=amount_text(amount.nanos - left),
                    claims=tuple(sorted(set(holding.shares))) if holding is not None else (),
                )
        return None

    def _check_attributes(self, position: int) -> AnyCheck | None:
        for number in self._alternative.constraints:
            name = self._wanted.constraints[number].attribute
            if not self._layout.attribute(name).values[position]:
                return AttributeMissing(attribute=name)
        return None


def _selector_false(selector: Selector, device: EffectiveDevice) -> SelectorFalse:
    conditions = conditions_of(selector.expression, device)
    false = next((condition for condition in conditions if condition.value is False), None)
    if false is None:
        return SelectorFalse(
            class_name=selector.class_name,
            index=selector.index,
            expression=selector.expression,
            condition=selector.expression,
        )
    return SelectorFalse(
        class_name=selector.class_name,
        index=selector.index,
        expression=selector.expression,
        condition=false.text,
        line=false.line,
        column=false.column,
        values={f"{domain}/{name}": _plain(value) for (_, domain, name), value in false.seen.items()},
    )


def _plain(value: Any) -> Any:
    """A value that an expression saw, for JSON."""
    if isinstance(value, Quantity | Semver):
        return str(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _unsuitable(
    name: str, requested: Mapping[str, Quantity], declared: Mapping[str, DeviceCapacity], *, message: str = ""
) -> CapacityUnsuitable:
    """What a device has of a capacity, and what its policy lets one request have of it."""
    asked = requested.get(name)
    entry = declared.get(name)
    policy = None if entry is None else entry.request_policy
    most = None if policy is None or policy.valid_range is None else policy.valid_range.max
    return CapacityUnsuitable(
        capacity=name,
        requested="" if asked is None else str(asked),
        value=None if entry is None else str(entry.value),
        at_most=None if most is None else str(most),
        choices=() if policy is None else tuple(str(value) for value in policy.valid_values),
        message=message,
    )
