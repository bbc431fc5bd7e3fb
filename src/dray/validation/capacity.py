"""Capacities of devices and the policies for sharing them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dray.api.field import forbidden, invalid, required, too_many
from dray.api.quantity import Quantity
from dray.api.resource import CapacityRequestPolicy, CapacityRequestPolicyRange, DeviceCapacity
from dray.validation import check
from dray.validation.context import Errors
from dray.validation.resource_names import shortened, validate_qualified_name

VALID_VALUES: Final = 10
_UNIT: Final = 10**9
_MILLI: Final = 10**6
_INT64_MAX: Final = (2**63 - 1) * _UNIT


def validate_capacities(errors: Errors, capacities: dict[str, DeviceCapacity], path: str, *, shareable: bool) -> None:
    """The capacities of one device; only a device that may be shared has request policies."""
    for key, capacity in capacities.items():
        validate_qualified_name(errors, key, path)
        if capacity.request_policy is None:
            continue
        policy = f"{path}[{shortened(key)}].requestPolicy"
        if shareable:
            validate_request_policy(errors, capacity.value, capacity.request_policy, policy)
        else:
            errors.append(forbidden(policy, "needs allowMultipleAllocations: true"))


def validate_request_policy(errors: Errors, capacity: Quantity, policy: CapacityRequestPolicy, path: str) -> None:
    """Values to choose from, or a range; both need a default that they allow."""
    if policy.valid_values and policy.valid_range is not None:
        errors.append(forbidden(path, "only one of validValues and validRange may be given"))
    elif policy.default is None:
        if policy.valid_values or policy.valid_range is not None:
            errors.append(required(f"{path}.default", "required with validValues and with validRange"))
    elif policy.valid_values:
        _validate_values(errors, policy.default, capacity, policy.valid_values, f"{path}.validValues")
    elif policy.valid_range is not None:
        _validate_range(errors, policy.default, capacity, policy.valid_range, f"{path}.validRange")


def _validate_values(
    errors: Errors, default: Quantity, capacity: Quantity, values: tuple[Quantity, ...], path: str
) -> None:
    for index in range(1, len(values)):
        if values[index - 1] > values[index]:
            errors.append(invalid(f"{path}[{index}]", str(values[index]), "values must be in ascending order"))
    if len(values) > VALID_VALUES:
        errors.append(too_many(path, len(values), VALID_VALUES))
    else:
        for index, value in enumerate(values):
            if value > capacity:
                errors.append(invalid(f"{path}[{index}]", str(value), f"is larger than the capacity {capacity}"))
        check.unique(errors, path, (value.nanos for value in values))
        if default in values:
            return
    errors.append(invalid(path, str(default), "the default is not one of the values"))


def _validate_range(
    errors: Errors, default: Quantity, capacity: Quantity, allowed: CapacityRequestPolicyRange, path: str
) -> None:
    if allowed.min is None:
        errors.append(required(f"{path}.min"))
        return
    low, high = allowed.min, allowed.max
    if low > capacity:
        errors.append(invalid(f"{path}.min", str(low), f"is larger than the capacity {capacity}"))
    if default < low:
        errors.append(invalid(f"{path}.default", str(default), f"is less than min {low}"))
    if high is not None:
        if low > high:
            errors.append(invalid(f"{path}.max", str(high), f"is less than min {low}"))
        if high > capacity:
            errors.append(invalid(f"{path}.max", str(high), f"is larger than the capacity {capacity}"))
        if default > high:
            errors.append(invalid(f"{path}.default", str(default), f"is more than max {high}"))
    _validate_step(errors, default, capacity, allowed, path)


def _validate_step(
    errors: Errors, default: Quantity, capacity: Quantity, allowed: CapacityRequestPolicyRange, path: str
) -> None:
    """The default and max must lie a whole number of steps above min, counted in units, or in thousandths of them."""
    bounds = {"default": default, "min": allowed.min, "max": allowed.max, "step": allowed.step}
    given = {name: bound for name, bound in bounds.items() if bound is not None}
    fractional = any(bound.nanos % _UNIT for bound in given.values())
    if fractional and _report(errors, path, given, _outside_milli, "cannot be counted in thousandths"):
        return
    step, low = allowed.step, given["min"]
    if step is None:
        return
    if step.nanos <= 0:
        errors.append(invalid(f"{path}.step", str(step), "must be greater than zero"))
        return
    if low.nanos + step.nanos > capacity.nanos:
        errors.append(invalid(f"{path}.step", str(step), f"one step above min exceeds the capacity {capacity}"))
    if not fractional and _report(errors, path, given, _outside_int64, "must be between 0 and 2^63-1"):
        return
    for value in (default, allowed.max):
        if value is not None and (value.nanos - low.nanos) % step.nanos:
            errors.append(invalid(f"{path}.step", str(value), f"is not a whole number of steps of {step} above {low}"))


def _report(errors: Errors, path: str, given: dict[str, Quantity], breaks: Callable[[int], bool], detail: str) -> bool:
    """Add an error for each bound that breaks a rule, and say whether any does."""
    bad = {name: bound for name, bound in given.items() if breaks(bound.nanos)}
    for name, bound in bad.items():
        errors.append(invalid(f"{path}.{name}", str(bound), detail))
    return bool(bad)


def _outside_milli(nanos: int) -> bool:
    return nanos % _MILLI != 0 or abs(nanos) > (2**63 - 1) * _MILLI


def _outside_int64(nanos: int) -> bool:
    return not 0 <= nanos <= _INT64_MAX
