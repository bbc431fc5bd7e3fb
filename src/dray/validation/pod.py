"""Pod: what a new pod starts with, and what may change later."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec.structs import replace

from dray.api.conditions import POD_SCHEDULED
from dray.api.field import FieldError, forbidden, invalid
from dray.api.generated.core import Container, Pod, PodCondition, PodSpec, PodStatus
from dray.api.pods import DELETION_COST, MIRROR_ANNOTATION
from dray.api.sharing import remembered
from dray.validation import check, names
from dray.validation.containers import validate_image_spaces
from dray.validation.context import Context, Errors
from dray.validation.metadata import with_metadata
from dray.validation.pod_claims import validate_claim_statuses, validate_extended_claim
from dray.validation.pod_defaults import default_pod, default_pod_status
from dray.validation.pod_spec import validate_pod_spec
from dray.validation.pod_warnings import pod_warnings
from dray.validation.qos_class import qos_class
from dray.validation.rules import Rules

GATE: Final = "DynamicResourceAllocation"
GROUPS_GATE: Final = "GenericWorkload"
_INT32_MAX: Final = 2**31 - 1


def _change(new: Pod, old: Pod | None, ctx: Context) -> Pod:
    """A new pod is pending; resource claims go while their gate is off, unless stored already (4381-79, 4381-207)."""
    if not ctx.enabled(GATE) and not (old is not None and _uses_claims(old.spec)):
        new = replace(new, spec=_without_claims(new.spec))
    if not ctx.enabled(GROUPS_GATE) and (old is None or old.spec.scheduling_group is None):
        new = replace(new, spec=replace(new.spec, scheduling_group=None))
    if old is not None:
        return new
    return replace(new, status=_first_status(new.spec))


@remembered
def _first_status(spec: PodSpec) -> PodStatus:
    status = PodStatus(phase="Pending", qos_class=qos_class(spec))
    if not spec.scheduling_gates:
        return status
    blocked = PodCondition(
        type=POD_SCHEDULED,
        status="False",
        reason="SchedulingGated",
        message="Waiting until the pod has no scheduling gates",
    )
    return replace(status, conditions=(blocked,))


def _uses_claims(spec: PodSpec) -> bool:
    return bool(spec.resource_claims) or any(container.resources.claims for container in _containers(spec))


def _without_claims(spec: PodSpec) -> PodSpec:
    def strip(container: Container) -> Container:
        return replace(container, resources=replace(container.resources, claims=()))

    return replace(
        spec,
        resource_claims=(),
        containers=tuple(map(strip, spec.containers)),
        init_containers=tuple(map(strip, spec.init_containers)),
    )


def _containers(spec: PodSpec) -> Iterator[Container]:
    yield from spec.containers
    yield from spec.init_containers


def _check(errors: Errors, new: Pod, old: Pod | None, _ctx: Context) -> None:
    spec, annotations = new.spec, new.metadata.annotations
    is_mirror = MIRROR_ANNOTATION in annotations
    errors += _spec_errors(spec, is_mirror)
    if is_mirror and not spec.node_name:
        where = f"metadata.annotations[{MIRROR_ANNOTATION}]"
        errors.append(invalid(where, annotations[MIRROR_ANNOTATION], "needs spec.nodeName"))
    _validate_deletion_cost(errors, annotations.get(DELETION_COST))
    if old is not None:
        _check_update(errors, new, old)
        return
    if spec.ephemeral_containers:
        errors.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if spec.node_name and spec.scheduling_gates:
        errors.append(forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))


@remembered
def _spec_errors(spec: PodSpec, is_mirror: bool) -> tuple[FieldError, ...]:
    """What is wrong with a spec by itself."""
    errors: Errors = []
    validate_pod_spec(errors, spec, "spec", is_pod=True, is_mirror=is_mirror)
    check.not_negative(errors, "spec.terminationGracePeriodSeconds", spec.termination_grace_period_seconds or 0)
    validate_image_spaces(errors, spec.containers, "spec.containers")
    validate_image_spaces(errors, spec.init_containers, "spec.initContainers")
    return tuple(errors)


def _validate_deletion_cost(errors: Errors, cost: str | None) -> None:
    if cost is None:
        return
    digits = cost.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 11 and abs(int(cost)) <= _INT32_MAX):
        errors.append(invalid(f"metadata.annotations[{DELETION_COST}]", cost, "must be an integer of 32 bits"))


def _check_update(errors: Errors, new: Pod, old: Pod) -> None:
    """Of a spec only images, deadlines, tolerations (more) and scheduling gates (fewer) may change (4381-72)."""
    for field, now, before in (
        ("containers", new.spec.containers, old.spec.containers),
        ("initContainers", new.spec.init_containers, old.spec.init_containers),
    ):
        if len(now) != len(before):
            errors.append(forbidden(f"spec.{field}", "containers may not be added or removed"))
            return
    if not _check_deadline(errors, new.spec.active_deadline_seconds, old.spec.active_deadline_seconds):
        return
    _check_tolerations(errors, new.spec, old.spec)
    _check_gates(errors, new.spec, old.spec)
    if _with_changeable_fields_of(old, new).spec != old.spec:
        errors.append(
            forbidden(
                "spec",
                "only images, activeDeadlineSeconds, terminationGracePeriodSeconds, added tolerations and removed"
                " schedulingGates may change",
            )
        )


def _check_deadline(errors: Errors, new: int | None, old: int | None) -> bool:
    """A deadline may be set or become earlier. Says whether the rest is worth looking at."""
    path = "spec.activeDeadlineSeconds"
    if new is None:
        if old is not None:
            errors.append(invalid(path, None, "must not be removed"))
        return True
    if not 0 <= new <= _INT32_MAX:
        errors.append(invalid(path, new, f"must be between 0 and {_INT32_MAX}"))
        return False
    if old is not None and old < new:
        errors.append(invalid(path, new, "must be less than or equal to previous value"))
        return False
    return True


def _check_tolerations(errors: Errors, new: PodSpec, old: PodSpec) -> None:
    kept = {replace(toleration, toleration_seconds=None) for toleration in new.tolerations}
    if any(replace(toleration, toleration_seconds=None) not in kept for toleration in old.tolerations):
        errors.append(forbidden("spec.tolerations", "of an existing toleration only tolerationSeconds may change"))


def _check_gates(errors: Errors, new: PodSpec, old: PodSpec) -> None:
    known = {gate.name for gate in old.scheduling_gates}
    for index, gate in enumerate(new.scheduling_gates):
        if gate.name not in known:
            errors.append(forbidden(f"spec.schedulingGates[{index}].name", "scheduling gates can only be removed"))


def _with_changeable_fields_of(old: Pod, new: Pod) -> Pod:
    """The new pod as if nothing had changed that may change; what differs then may not."""

    def images(now: tuple[Container, ...], before: tuple[Container, ...]) -> tuple[Container, ...]:
        return tuple(replace(entry, image=was.image) for entry, was in zip(now, before, strict=True))

    changes: dict[str, Any] = {
        "containers": images(new.spec.containers, old.spec.containers),
        "init_containers": images(new.spec.init_containers, old.spec.init_containers),
        "active_deadline_seconds": old.spec.active_deadline_seconds,
        "tolerations": old.spec.tolerations,
        "scheduling_gates": old.spec.scheduling_gates,
    }
    grace = old.spec.termination_grace_period_seconds
    if grace is not None and grace < 0 and new.spec.termination_grace_period_seconds == 1:
        changes["termination_grace_period_seconds"] = grace
    if old.spec.scheduling_gates:
        changes.update(_choices_of_gated(new.spec, old.spec))
    return replace(new, spec=replace(new.spec, **changes))


def _choices_of_gated(new: PodSpec, old: PodSpec) -> dict[str, Any]:
    """While a pod is held back by gates, the choice of its nodes may become narrower."""
    if old.node_selector.items() <= new.node_selector.items():
        return {"node_selector": old.node_selector}
    return {}


def _check_status(errors: Errors, new: Pod, old: Pod, _ctx: Context) -> None:
    status, before = new.status, old.status
    for index, condition in enumerate(status.conditions):
        inner = f"status.conditions[{index}]"
        check.name(errors, f"{inner}.Type", condition.type, names.label_key)  # with the capital of Kubernetes
        check.not_negative(errors, f"{inner}.observedGeneration", condition.observed_generation)
    nominated = status.nominated_node_name
    if nominated and nominated != before.nominated_node_name:
        check.name(errors, "status.nominatedNodeName", nominated, names.dns_subdomain)
        if old.spec.node_name:
            errors.append(forbidden("status.nominatedNodeName", "the pod has a node already"))
    check.not_negative(errors, "status.observedGeneration", status.observed_generation)
    if status.pod_ips != before.pod_ips:
        _check_addresses(errors, status, before)
    check.immutable(errors, "status.qosClass", status.qos_class, before.qos_class)
    validate_claim_statuses(errors, status.resource_claim_statuses, new.spec.resource_claims)
    if status.extended_resource_claim_status is not None:
        validate_extended_claim(errors, status.extended_resource_claim_status, new.spec)


def _check_addresses(errors: Errors, status: PodStatus, before: PodStatus) -> None:
    """At most one address of each family."""
    known = {one.ip for one in before.pod_ips}
    for index, one in enumerate(status.pod_ips):
        if one.ip not in known:
            check.address(errors, f"status.podIPs[{index}]", one.ip)
    families = [":" in one.ip for one in status.pod_ips]
    if len(set(families)) < len(families):
        errors.append(invalid("status.podIPs", status.pod_ips, "may specify no more than one IP for each IP family"))


def _change_status(new: Pod, old: Pod, ctx: Context) -> Pod:
    """Owners stay; the class of service and the claim for extended resources survive clients that leave them out."""
    known = old.status.extended_resource_claim_status
    told = new.status.extended_resource_claim_status or known
    if known is None and not ctx.enabled("DRAExtendedResource"):
        told = None
    qos_class = new.status.qos_class or old.status.qos_class
    status = replace(new.status, qos_class=qos_class, extended_resource_claim_status=told)
    return replace(with_metadata(new, owner_references=old.metadata.owner_references), status=status)


RULES: Final = {
    "Pod": Rules(
        has_generation=True,
        has_status=True,
        status_guards_metadata=False,
        keeps_status_on_create=True,
        default=default_pod,
        default_status=default_pod_status,
        change=_change,
        change_status=_change_status,
        check=_check,
        check_status=_check_status,
        warnings=pod_warnings,
    )
}
