"""Lease: who holds something, and since when."""

from __future__ import annotations

from typing import Final

from dray.api.field import forbidden, invalid
from dray.api.generated.coordination import Lease
from dray.validation import check, names
from dray.validation.context import Context, Errors
from dray.validation.rules import Rules

STRATEGIES: Final = ("OldestEmulationVersion",)
"""How a leader is chosen; others have a domain in front of their names."""


def _check_lease(errors: Errors, new: Lease, _old: Lease | None, _ctx: Context) -> None:
    duration, transitions = new.spec.lease_duration_seconds, new.spec.lease_transitions
    if duration is not None and duration <= 0:
        errors.append(invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"))
    if transitions is not None:
        check.not_negative(errors, "spec.leaseTransitions", transitions)
    strategy = new.spec.strategy
    if strategy is not None and "/" not in strategy:
        check.one_of(errors, "spec.strategy.strategy", strategy, STRATEGIES)
    elif strategy is not None:
        check.name(errors, "spec.strategy.strategy", strategy, names.label_key)
    if strategy is None and new.spec.preferred_holder:
        errors.append(forbidden("spec.preferredHolder", "may only be specified if `strategy` is defined"))


RULES: Final = {"Lease": Rules(check=_check_lease)}
