"""Device taints and tolerations (KEP-5055)."""

from __future__ import annotations

from typing import Final, TypeVar

from msgspec.structs import replace

from dray.api.cluster import Taint
from dray.api.field import invalid, not_supported, required, too_long
from dray.api.resource.taint import (
    EFFECT_NO_EXECUTE,
    EFFECT_NO_SCHEDULE,
    EFFECT_NONE,
    OPERATOR_EQUAL,
    OPERATOR_EXISTS,
    TAINT_DATA_BYTES,
    TAINT_DESCRIPTION_LENGTH,
    TOLERATIONS_PER_REQUEST,
    DeviceTaint,
    DeviceToleration,
)
from dray.api.times import Time
from dray.validation import check, names
from dray.validation.context import Errors

EFFECTS: Final = (EFFECT_NO_EXECUTE, EFFECT_NO_SCHEDULE, EFFECT_NONE)
OPERATORS: Final = (OPERATOR_EQUAL, OPERATOR_EXISTS)
T = TypeVar("T", DeviceTaint, Taint)
"""A taint of a device, or of a cluster."""


def validate_taint(
    errors: Errors, taint: DeviceTaint, path: str, *, old: DeviceTaint | None = None, declared: str = ""
) -> None:
    """One taint (5055-11..18). An effect that is stored already passes even if it is unknown here (SVS-08)."""
    check.name(errors, f"{path}.key", taint.key, names.label_key)
    check.name(errors, f"{path}.value", taint.value, names.label_value)
    if old is None or old.effect != taint.effect:
        check.required_one_of(errors, f"{declared or path}.effect", taint.effect, EFFECTS)
    if len(taint.description) > TAINT_DESCRIPTION_LENGTH:
        errors.append(too_long(f"{path}.description", TAINT_DESCRIPTION_LENGTH))
    if taint.data is not None and check.json_size(taint.data) > TAINT_DATA_BYTES:
        errors.append(too_long(f"{path}.data", TAINT_DATA_BYTES))
    rate = taint.evictions_per_second
    if rate is not None and rate <= 0:
        errors.append(invalid(f"{path}.evictionsPerSecond", rate, "must be greater than zero"))


def validate_tolerations(errors: Errors, tolerations: tuple[DeviceToleration, ...], path: str, declared: str) -> None:
    """The tolerations of a request: at most 16 (5055-21, SVS-17), an empty key only with Exists (5055-24, SVS-18)."""
    if not check.fits(errors, path, tolerations, TOLERATIONS_PER_REQUEST):
        return
    for index, toleration in enumerate(tolerations):
        validate_toleration(errors, toleration, f"{path}[{index}]", f"{declared}[{index}]")
        if not toleration.key and toleration.operator == OPERATOR_EQUAL:
            errors.append(
                invalid(f"{path}[{index}].operator", toleration.operator, "must be Exists when `key` is empty")
            )


def validate_toleration(errors: Errors, toleration: DeviceToleration, path: str, declared: str = "") -> None:
    """One toleration (5055-23..28). `declared` is its path as the request's version spells it."""
    validate_declared_toleration(errors, toleration, declared or path)
    if toleration.operator == OPERATOR_EXISTS and toleration.value:
        errors.append(invalid(f"{path}.value", toleration.value, "must be empty for operator Exists"))
    if toleration.operator == OPERATOR_EQUAL:
        check.name(errors, f"{path}.value", toleration.value, names.label_value)


def validate_declared_toleration(errors: Errors, toleration: DeviceToleration, path: str) -> None:
    """What holds for each field of a toleration by itself."""
    if toleration.key:
        check.name(errors, f"{path}.key", toleration.key, names.label_key)
    if not toleration.operator:
        errors.append(required(f"{path}.operator"))
    elif toleration.operator not in OPERATORS:
        errors.append(not_supported(f"{path}.operator", toleration.operator, OPERATORS))
    if toleration.effect:
        check.one_of(errors, f"{path}.effect", toleration.effect, EFFECTS)


def timed(taints: tuple[T, ...], now: Time) -> tuple[T, ...]:
    """Taints with the time at which they were added, where the client gave none; whatever their effect (5055-151)."""
    if all(taint.time_added is not None for taint in taints):
        return taints
    return tuple(taint if taint.time_added is not None else replace(taint, time_added=now) for taint in taints)


def toleration_warnings(tolerations: tuple[DeviceToleration, ...], path: str) -> list[str]:
    """`tolerationSeconds` counts only with the effect NoExecute (5055-148); say so where it is set in vain."""
    return [
        f"{path}[{index}].tolerationSeconds: ignored unless effect is NoExecute; {_what_happens(toleration)}"
        for index, toleration in enumerate(tolerations)
        if toleration.toleration_seconds is not None and toleration.effect != EFFECT_NO_EXECUTE
    ]


def _what_happens(toleration: DeviceToleration) -> str:
    if toleration.effect:
        return f"effect {toleration.effect} evicts nobody"
    return "without an effect the taint is tolerated forever"
