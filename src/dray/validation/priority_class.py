"""PriorityClass: a number that does not change once pods have it."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from dray.api.field import forbidden
from dray.api.generated.scheduling import PriorityClass
from dray.api.times import Time
from dray.validation import check
from dray.validation.context import Context, Errors
from dray.validation.rules import Rules

HIGHEST: Final = 1_000_000_000
SYSTEM_PRIORITIES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
POLICIES: Final = ("Never", "PreemptLowerPriority")


def _default(obj: PriorityClass, _now: Time) -> PriorityClass:
    return obj if obj.preemption_policy is not None else replace(obj, preemption_policy="PreemptLowerPriority")


def _check(errors: Errors, new: PriorityClass, old: PriorityClass | None, _ctx: Context) -> None:
    name = new.metadata.name
    if name.startswith("system-"):
        if SYSTEM_PRIORITIES.get(name) != new.value:
            errors.append(forbidden("metadata.name", "priority class names with 'system-' prefix are reserved"))
    elif new.value > HIGHEST:
        why = f"maximum allowed value of a user defined priority is {HIGHEST}"
        errors.append(forbidden("value", why))
    if old is None and new.preemption_policy is not None:
        check.required_one_of(errors, "preemptionPolicy", new.preemption_policy, POLICIES)
    if old is not None:
        if new.value != old.value:
            errors.append(forbidden("value", "may not be changed in an update"))
        check.immutable(errors, "preemptionPolicy", new.preemption_policy, old.preemption_policy)


RULES: Final = {
    "PriorityClass": Rules(namespaced=False, has_generation=True, generation_counts=(), default=_default, check=_check),
}
