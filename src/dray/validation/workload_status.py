"""The numbers in the status of workloads: none is negative, and a part is not more than the whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from dray.api.field import invalid
from dray.validation import check
from dray.validation.context import Context, Errors

CheckStatus = Callable[[Errors, Any, Any, Context], None]

_OF_ALL: Final = "replicas"
_OF_READY: Final = "readyReplicas"
_AVAILABLE: Final = "availableReplicas"
READY_PARTS: Final = ((_OF_READY, _OF_ALL), (_AVAILABLE, _OF_ALL), (_AVAILABLE, _OF_READY))


def validate_numbers(errors: Errors, status: msgspec.Struct) -> None:
    """No number of a status is negative."""
    for field in msgspec.structs.fields(status):
        value = getattr(status, field.name)
        if isinstance(value, int) and not isinstance(value, bool):
            check.not_negative(errors, f"status.{field.encode_name}", value)


def status_check(*more: str, parts: tuple[tuple[str, str], ...] = READY_PARTS) -> CheckStatus:
    """A check of numbers, of the usual parts and of `more` that count some of all replicas."""
    pairs = (*((name, _OF_ALL) for name in more), *parts)

    def checked(errors: Errors, new: Any, old: Any, _ctx: Context) -> None:
        validate_numbers(errors, new.status)
        names = {field.encode_name: field.name for field in msgspec.structs.fields(new.status)}
        for part, whole in pairs:
            value = getattr(new.status, names[part])
            if value > getattr(new.status, names[whole]):
                errors.append(invalid(f"status.{part}", value, f"cannot be greater than status.{whole}"))
        _validate_collisions(errors, new.status, old.status)

    return checked


def _validate_collisions(errors: Errors, new: Any, old: Any) -> None:
    """Names that were taken are counted, and never uncounted: the count is part of the next name."""
    before, now = getattr(old, "collision_count", None), getattr(new, "collision_count", None)
    if before is not None and (now is None or now < before):
        errors.append(invalid("status.collisionCount", now or 0, "cannot be decremented"))
