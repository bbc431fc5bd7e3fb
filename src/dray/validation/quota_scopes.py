"""The scopes of quotas: which pods and volume claims a quota counts."""

from __future__ import annotations

from dray.api.generated.core import (
    PersistentVolumeClaim,
    Pod,
    PodSpec,
    ResourceQuotaSpec,
    ScopedResourceSelectorRequirement,
)
from dray.api.meta import Object
from dray.validation.qos_class import qos_class


def is_in_scope(spec: ResourceQuotaSpec, obj: Object) -> bool:
    """Whether a quota counts an object at all. A quota with scopes counts only pods or volume claims in all of them."""
    requirements = [ScopedResourceSelectorRequirement(scope_name=name, operator="Exists") for name in spec.scopes]
    if spec.scope_selector is not None:
        requirements += spec.scope_selector.match_expressions
    if not requirements:
        return True
    if isinstance(obj, PersistentVolumeClaim):
        return all(_claim_in_scope(one, obj) for one in requirements)
    return isinstance(obj, Pod) and all(_pod_in_scope(one, obj) for one in requirements)


def _claim_in_scope(requirement: ScopedResourceSelectorRequirement, claim: PersistentVolumeClaim) -> bool:
    if requirement.scope_name != "VolumeAttributesClass":
        return False
    named = {claim.spec.volume_attributes_class_name or "", claim.status.current_volume_attributes_class_name or ""}
    modifying = claim.status.modify_volume_status
    if modifying is not None:
        named.add(modifying.target_volume_attributes_class_name)
    return any(_matches(requirement, name) for name in (named - {""} or {""}))


def _pod_in_scope(requirement: ScopedResourceSelectorRequirement, pod: Pod) -> bool:
    name = requirement.scope_name
    if name == "PriorityClass":
        return _matches(requirement, pod.spec.priority_class_name)
    has_deadline = pod.spec.active_deadline_seconds is not None
    best_effort = qos_class(pod.spec) == "BestEffort"
    return {
        "Terminating": has_deadline,
        "NotTerminating": not has_deadline,
        "BestEffort": best_effort,
        "NotBestEffort": not best_effort,
        "CrossNamespacePodAffinity": _reaches_other_namespaces(pod.spec),
    }.get(name, False)


def _matches(requirement: ScopedResourceSelectorRequirement, value: str) -> bool:
    if requirement.operator == "Exists":
        return bool(value)
    if requirement.operator == "DoesNotExist":
        return not value
    return (value in requirement.values) is (requirement.operator == "In")


def _reaches_other_namespaces(spec: PodSpec) -> bool:
    affinity = spec.affinity
    if affinity is None:
        return False
    return any(
        term.namespaces or term.namespace_selector is not None
        for group in (affinity.pod_affinity, affinity.pod_anti_affinity)
        if group is not None
        for term in (
            *group.required_during_scheduling_ignored_during_execution,
            *(one.pod_affinity_term for one in group.preferred_during_scheduling_ignored_during_execution),
        )
    )
