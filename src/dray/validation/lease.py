"""Lease: who holds something, and since when."""

from __future__ import annotations

from typing import Final

from dray.api.field import invalid
from dray.api.generated.coordination import Lease
from dray.validation import check
from dray.validation.context import Context, Errors
from dray.validation.rules import Rules


def _check_lease(errors: Errors, new: Lease, _old: Lease | None, _ctx: Context) -> None:
    duration, transitions = new.spec.lease_duration_seconds, new.spec.lease_transitions
    if duration is not None and duration <= 0:
        errors.append(invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"))
    if transitions is not None:
        check.not_negative(errors, "spec.leaseTransitions", transitions)


RULES: Final = {"Lease": Rules(check=_check_lease)}
