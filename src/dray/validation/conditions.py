"""Conditions in the status of claims, rules and clusters."""

from __future__ import annotations

from typing import Final

from dray.api.field import duplicate, required
from dray.api.meta import Condition
from dray.validation import check, names
from dray.validation.context import Errors

STATUSES: Final = ("False", "True", "Unknown")
_REASON_BYTES: Final = 1024
_MESSAGE_BYTES: Final = 32 * 1024


def validate_conditions(errors: Errors, conditions: tuple[Condition, ...], path: str) -> None:
    """Every condition complete, each type once."""
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        inner = f"{path}[{index}]"
        if condition.type in seen:
            errors.append(duplicate(inner, condition.type))
        seen.add(condition.type)
        validate_condition(errors, condition, inner)


def validate_condition(errors: Errors, condition: Condition, path: str) -> None:
    """One condition: type, status, time and reason are required."""
    check.required_name(errors, f"{path}.type", condition.type, names.label_key)
    check.required_one_of(errors, f"{path}.status", condition.status, STATUSES)
    check.not_negative(errors, f"{path}.observedGeneration", condition.observed_generation)
    if condition.last_transition_time is None:
        errors.append(required(f"{path}.lastTransitionTime"))
    check.required_name(errors, f"{path}.reason", condition.reason, names.condition_reason)
    check.length(errors, f"{path}.reason", condition.reason, _REASON_BYTES)
    check.length(errors, f"{path}.message", condition.message, _MESSAGE_BYTES)
