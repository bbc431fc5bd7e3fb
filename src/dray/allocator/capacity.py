"""How much of a device's capacity a request consumes (consumable capacity).

A request that names no amount takes the policy's default, or the whole capacity without one. An amount that is named is
rounded up to what the policy allows. Amounts are compared exactly, in nano units.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dray.api.quantity import Quantity
from dray.api.resource import CapacityRequestPolicy, CapacityRequestPolicyRange, DeviceCapacity

_INT64_MAX: Final = 2**63 - 1
_MILLI: Final = 10**6
"""Nano units in a thousandth."""


class CapacityFault(Exception):
    """An amount that cannot be computed with. It aborts the allocation; another device is not tried instead."""


def consume(requested: Mapping[str, Quantity], capacity: Mapping[str, DeviceCapacity]) -> dict[str, Quantity] | None:
    """What one request takes of each capacity of a device, or None if the device's policies do not allow it.

    None too if the request names a capacity that the device does not have. Raises CapacityFault.
    """
    if any(name not in capacity for name in requested):
        return None
    consumed = {name: _amount(name, requested.get(name), entry) for name, entry in capacity.items()}
    if any(_violates(consumed[name], entry.request_policy) for name, entry in capacity.items()):
        return None
    return consumed


def first_misfit(requested: Mapping[str, Quantity], capacity: Mapping[str, DeviceCapacity]) -> str:
    """The capacity for which a device can never serve a request; empty if it can. Raises CapacityFault."""
    lacking = next((name for name in requested if name not in capacity), "")
    if lacking:
        return lacking
    for name, entry in capacity.items():
        amount = _amount(name, requested.get(name), entry)
        if _violates(amount, entry.request_policy) or amount.nanos > entry.value.nanos:
            return name
    return ""


def fits(consumed: Mapping[str, Quantity], capacity: Mapping[str, DeviceCapacity], taken: Mapping[str, int]) -> bool:
    """Whether there is room besides what is `taken` (in nano units) already."""
    return all(amount.nanos + taken.get(name, 0) <= capacity[name].value.nanos for name, amount in consumed.items())


def least_share(entry: DeviceCapacity) -> int:
    """The smallest part of a capacity that a request can take, in nano units."""
    policy = entry.request_policy
    if policy is None:
        return 1
    if policy.valid_range is not None:
        least = policy.valid_range.min
        amounts = [policy.default, least] if least is not None else []
    else:
        amounts = [policy.default, *policy.valid_values] if policy.valid_values else []
    return min((amount.nanos for amount in amounts if amount is not None), default=1)


def _amount(name: str, requested: Quantity | None, entry: DeviceCapacity) -> Quantity:
    amount = _rounded(name, requested, entry)
    if amount.nanos < 0:
        raise CapacityFault(f'capacity "{name}": capacity value is negative')
    return amount


def _rounded(name: str, requested: Quantity | None, entry: DeviceCapacity) -> Quantity:
    policy = entry.request_policy
    if requested is None:
        return policy.default if policy is not None and policy.default is not None else entry.value
    if policy is None:
        return requested
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _round_up(name, requested, policy.valid_range.min, policy.valid_range)
    return next((value for value in policy.valid_values if requested <= value), requested)


def _round_up(name: str, requested: Quantity, least: Quantity, allowed: CapacityRequestPolicyRange) -> Quantity:
    """The smallest amount of the range that is no less than what was requested."""
    if requested < least:
        return least
    step = allowed.step
    if step is None or step.nanos <= 0:
        return requested
    milli = _uses_milli(allowed)
    amount = _exact_milli(requested) if milli else _whole(requested)
    if amount is None:
        raise _unrepresentable(name, requested)
    first, width = (
        (least.milli_value(), step.milli_value()) if milli else (least.value_rounded_up(), step.value_rounded_up())
    )
    rounded = first + -((first - amount) // width) * width
    if rounded > _INT64_MAX:
        raise _unrepresentable(name, requested)
    if not milli:
        return Quantity.of_int(rounded, step.format)
    if rounded % 1000 == 0:
        return Quantity.of_int(rounded // 1000, step.format)
    return Quantity(rounded * _MILLI, step.format, -3)


def _unrepresentable(name: str, requested: Quantity) -> CapacityFault:
    return CapacityFault(
        f'capacity "{name}": request {requested} cannot be represented in the arithmetic of the valid range'
    )


def _violates(amount: Quantity, policy: CapacityRequestPolicy | None) -> bool:
    if policy is None or policy.default == amount:
        return False
    if policy.valid_range is not None:
        return _violates_range(amount, policy.valid_range)
    return bool(policy.valid_values) and amount not in policy.valid_values


def _violates_range(amount: Quantity, allowed: CapacityRequestPolicyRange) -> bool:
    if allowed.max is not None and amount > allowed.max:
        return True
    step = allowed.step
    if step is None or step.nanos <= 0:
        return False
    least = allowed.min
    if not _uses_milli(allowed):
        first = least.value_rounded_up() if least is not None else 0
        return (amount.value_rounded_up() - first) % step.value_rounded_up() != 0
    exact = _exact_milli(amount)
    first = least.milli_value() if least is not None else 0
    return exact is None or (exact - first) % step.milli_value() != 0


def _uses_milli(allowed: CapacityRequestPolicyRange) -> bool:
    """Whether all bounds are whole thousandths; else the range counts in whole units."""
    bounds = (allowed.min, allowed.max, allowed.step)
    return all(bound is None or _exact_milli(bound) is not None for bound in bounds)


def _exact_milli(amount: Quantity) -> int | None:
    """The amount in thousandths, if that is a 64-bit integer."""
    milli, rest = divmod(amount.nanos, _MILLI)
    return milli if rest == 0 and -_INT64_MAX - 1 <= milli <= _INT64_MAX else None


def _whole(amount: Quantity) -> int | None:
    value = amount.value_rounded_up()
    return value if value <= _INT64_MAX else None
