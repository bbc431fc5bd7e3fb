"""PodDisruptionBudget: how many pods may be taken away at a time."""

from __future__ import annotations

from typing import Final

from dray.api.field import invalid
from dray.api.generated.policy import PodDisruptionBudget
from dray.validation import check
from dray.validation.conditions import validate_conditions
from dray.validation.context import Context, Errors
from dray.validation.label_selectors import validate_label_selector
from dray.validation.rules import Rules
from dray.validation.workloads import validate_int_or_percent

POLICIES: Final = ("AlwaysAllow", "IfHealthyBudget")


def _check(errors: Errors, new: PodDisruptionBudget, _old: PodDisruptionBudget | None, _ctx: Context) -> None:
    spec = new.spec
    if spec.min_available is not None and spec.max_unavailable is not None:
        errors.append(invalid("spec", None, "minAvailable and maxUnavailable exclude each other"))
    if spec.min_available is not None:
        validate_int_or_percent(errors, spec.min_available, "spec.minAvailable")
    if spec.max_unavailable is not None:
        validate_int_or_percent(errors, spec.max_unavailable, "spec.maxUnavailable")
    validate_label_selector(errors, spec.selector, "spec.selector")
    if spec.unhealthy_pod_eviction_policy is not None:
        check.one_of(errors, "spec.unhealthyPodEvictionPolicy", spec.unhealthy_pod_eviction_policy, POLICIES)


def _check_status(errors: Errors, new: PodDisruptionBudget, _old: PodDisruptionBudget, _ctx: Context) -> None:
    status = new.status
    validate_conditions(errors, status.conditions, "status.conditions")
    for field, value in (
        ("disruptionsAllowed", status.disruptions_allowed),
        ("currentHealthy", status.current_healthy),
        ("desiredHealthy", status.desired_healthy),
        ("expectedPods", status.expected_pods),
    ):
        check.not_negative(errors, f"status.{field}", value)


RULES: Final = {
    "PodDisruptionBudget": Rules(
        own_finalizers=True,
        has_generation=True,
        has_status=True,
        status_guards_metadata=False,
        check=_check,
        check_status=_check_status,
    ),
}
