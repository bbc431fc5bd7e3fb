"""PodGroup: pods that are scheduled together; and the fields that it has in common with the templates of a Workload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

from msgspec.structs import replace

from dray.api.field import forbidden, invalid, required
from dray.api.generated.scheduling import (
    DisruptionMode,
    PodGroup,
    PodGroupResourceClaim,
    PodGroupSchedulingConstraints,
    PodGroupSchedulingPolicy,
    PodGroupSpec,
    PodGroupTemplate,
    SingleDisruptionMode,
)
from dray.api.times import Time
from dray.validation import check, names
from dray.validation.conditions import validate_conditions
from dray.validation.context import Context, Errors
from dray.validation.rules import Rules

HIGHEST_PRIORITY: Final = 1_000_000_000
MAX_CLAIMS: Final = 4
MAX_CONSTRAINTS: Final = 1
POLICIES: Final = ("Never", "PreemptLowerPriority")
NO_COMPOSITES: Final = "groups of groups are not supported here"
_GATED: Final = (
    ("TopologyAwareWorkloadScheduling", "scheduling_constraints", None),
    ("DRAWorkloadResourceClaims", "resource_claims", ()),
    ("PodGroupPreemptionPolicy", "preemption_policy", None),
)

Grouping = TypeVar("Grouping", PodGroupSpec, PodGroupTemplate)
"""What says how a group of pods is treated: a group's spec, or a template for it."""


def drop_gated(new: Grouping, old: Grouping | None, ctx: Context) -> Grouping:
    """Without the fields of gates that are off, unless they are stored already."""
    for gate, field, empty in _GATED:
        if not ctx.enabled(gate) and (old is None or not getattr(old, field)):
            new = replace(new, **{field: empty})
    return new


def validate_grouping(errors: Errors, new: PodGroupSpec | PodGroupTemplate, path: str) -> None:
    """What groups and templates for them have in common."""
    _validate_policy(errors, new.scheduling_policy, f"{path}.schedulingPolicy")
    if new.scheduling_constraints is not None:
        _validate_constraints(errors, new.scheduling_constraints, f"{path}.schedulingConstraints")
    _validate_claims(errors, new.resource_claims, f"{path}.resourceClaims")
    mode = new.disruption_mode
    if mode is not None:
        _exactly_one(errors, f"{path}.disruptionMode", {"single": mode.single, "all": mode.all})
    if new.priority_class_name:
        check.name(errors, f"{path}.priorityClassName", new.priority_class_name, names.dns_subdomain)
    if new.priority is not None and new.priority > HIGHEST_PRIORITY:
        why = f"must be less than or equal to {HIGHEST_PRIORITY}"
        errors.append(invalid(f"{path}.priority", new.priority, why))
    if new.preemption_policy is not None:
        check.required_one_of(errors, f"{path}.preemptionPolicy", new.preemption_policy, POLICIES)


def validate_grouping_update(errors: Errors, new: Grouping, old: Grouping, path: str) -> None:
    """Nothing may change but how many pods a gang needs."""
    before, after = old.scheduling_policy, new.scheduling_policy
    check.immutable(errors, f"{path}.schedulingPolicy.basic", after.basic, before.basic)
    if (after.gang is None) != (before.gang is None):
        errors.append(invalid(f"{path}.schedulingPolicy.gang", None, "field cannot be set or cleared once set"))
    for field, name in (
        ("schedulingConstraints", "scheduling_constraints"),
        ("resourceClaims", "resource_claims"),
        ("disruptionMode", "disruption_mode"),
        ("priorityClassName", "priority_class_name"),
        ("priority", "priority"),
        ("preemptionPolicy", "preemption_policy"),
    ):
        check.immutable(errors, f"{path}.{field}", getattr(new, name), getattr(old, name))


def _validate_policy(errors: Errors, policy: PodGroupSchedulingPolicy, path: str) -> None:
    _exactly_one(errors, path, {"basic": policy.basic, "gang": policy.gang})
    if policy.gang is None:
        return
    if not policy.gang.min_count:
        errors.append(required(f"{path}.gang.minCount"))
    elif policy.gang.min_count < 1:
        errors.append(invalid(f"{path}.gang.minCount", policy.gang.min_count, "must be greater than or equal to 1"))


def _validate_constraints(errors: Errors, constraints: PodGroupSchedulingConstraints, path: str) -> None:
    if check.fits(errors, f"{path}.topology", constraints.topology, MAX_CONSTRAINTS):
        for index, constraint in enumerate(constraints.topology):
            check.required_name(errors, f"{path}.topology[{index}].key", constraint.key, names.label_key)


def _validate_claims(errors: Errors, claims: tuple[PodGroupResourceClaim, ...], path: str) -> None:
    if not check.fits(errors, path, claims, MAX_CLAIMS):
        return
    check.unique(errors, path, (claim.name for claim in claims))
    for index, claim in enumerate(claims):
        inner = f"{path}[{index}]"
        check.required_name(errors, f"{inner}.name", claim.name, names.dns_label)
        sources = {
            "resourceClaimName": claim.resource_claim_name,
            "resourceClaimTemplateName": claim.resource_claim_template_name,
        }
        _exactly_one(errors, inner, sources)
        for field, value in sources.items():
            if value is not None:
                check.name(errors, f"{inner}.{field}", value, names.dns_subdomain)


def _exactly_one(errors: Errors, path: str, members: Mapping[str, object]) -> None:
    """One member of a union, and no other, must be there."""
    given = [name for name, value in members.items() if value is not None]
    if len(given) != 1:
        found = "{" + ", ".join(given) + "}" if given else ""
        choices = ", ".join(f"`{name}`" for name in members)
        errors.append(invalid(path, found, f"must specify {'exactly ' if given else ''}one of: {choices}"))


def _default(obj: PodGroup, _now: Time) -> PodGroup:
    if obj.spec.disruption_mode is not None:
        return obj
    return replace(obj, spec=replace(obj.spec, disruption_mode=DisruptionMode(single=SingleDisruptionMode())))


def _change(new: PodGroup, old: PodGroup | None, ctx: Context) -> PodGroup:
    return replace(new, spec=drop_gated(new.spec, old.spec if old is not None else None, ctx))


def _check(errors: Errors, new: PodGroup, old: PodGroup | None, _ctx: Context) -> None:
    spec = new.spec
    if spec.parent_composite_pod_group_name is not None:
        errors.append(forbidden("spec.parentCompositePodGroupName", NO_COMPOSITES))
    if spec.workload_ref is not None:
        reference = spec.workload_ref
        check.required_name(errors, "spec.workloadRef.workloadName", reference.workload_name, names.dns_subdomain)
        check.required_name(errors, "spec.workloadRef.templateName", reference.template_name, names.dns_label)
    validate_grouping(errors, spec, "spec")
    if old is not None:
        check.immutable(errors, "spec.workloadRef", spec.workload_ref, old.spec.workload_ref)
        validate_grouping_update(errors, spec, old.spec, "spec")


def _check_status(errors: Errors, new: PodGroup, _old: PodGroup, _ctx: Context) -> None:
    validate_conditions(errors, new.status.conditions, "status.conditions")
    known = {claim.name for claim in new.spec.resource_claims}
    path = "status.resourceClaimStatuses"
    statuses = new.status.resource_claim_statuses
    if not check.fits(errors, path, statuses, MAX_CLAIMS):
        return
    check.unique(errors, path, (status.name for status in statuses))
    for index, status in enumerate(statuses):
        if status.name not in known:
            why = "must match the name of an entry in `spec.resourceClaims`"
            errors.append(invalid(f"{path}[{index}].name", status.name, why))
        if status.resource_claim_name is not None:
            where = f"{path}[{index}].resourceClaimName"
            check.name(errors, where, status.resource_claim_name, names.dns_subdomain)


RULES: Final = {
    "PodGroup": Rules(has_status=True, default=_default, change=_change, check=_check, check_status=_check_status),
}
