"""What objects use up of quotas, by the names that quotas use. Admission and the quota controller count alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from dray.api.generated.core import (
    Container,
    PersistentVolumeClaim,
    Pod,
    PodSpec,
    ResourceQuotaSpec,
    ScopedResourceSelectorRequirement,
)
from dray.api.meta import Object
from dray.api.pods import is_finished
from dray.api.quantity import Quantity
from dray.api.registry import Kind, by_resource
from dray.api.resource import DeviceRequest, ResourceClaim
from dray.api.resource.claim import ALLOCATION_RESULTS, MODE_ALL
from dray.validation.quota_devices import Neighbours, by_class_resource, charged_pod, may_count_claims

DEVICES: Final = "deviceclass.resource.k8s.io/devices"
COUNT: Final = "count/"
ONE: Final = Quantity.of_int(1)
ZERO: Final = Quantity.of_int(0)

# Objects that quotas can also count by their plural alone.
COUNTED: Final = frozenset(
    ("configmaps", "persistentvolumeclaims", "replicationcontrollers", "resourcequotas", "secrets", "services")
)

Usage = dict[str, Quantity]


def usage(resource: str, obj: Object, neighbours: Neighbours | None = None) -> Usage:
    """What an object counts for. `resource` is its plural with the group: `pods`, `resourceclaims.resource.k8s.io`.

    Without `neighbours`, claims do not count as extended resources.
    """
    used: Usage = {f"{COUNT}{resource}": ONE}
    if resource in COUNTED:
        used[resource] = ONE
    if isinstance(obj, ResourceClaim):
        used.update(_claim(obj, neighbours))
    elif isinstance(obj, Pod):
        used.update(_pod(obj))
    elif isinstance(obj, PersistentVolumeClaim):
        requests = obj.spec.resources.requests if obj.spec.resources is not None else {}
        if "storage" in requests:
            used["requests.storage"] = requests["storage"]
    return used


def _claim(claim: ResourceClaim, neighbours: Neighbours | None) -> Usage:
    devices: Usage = {}
    for request in claim.spec.devices.requests:
        for class_name, count in _devices(request).items():
            devices[class_name] = devices.get(class_name, ZERO) + count
    used = {f"{class_name}.{DEVICES}": count for class_name, count in devices.items()}
    if neighbours is not None and devices:
        pod = charged_pod(claim, neighbours)
        charged = _pod(pod) if pod is not None else {}
        for name, amount in by_class_resource(devices, neighbours).items():
            left = amount - charged.get(name, ZERO)
            if left > ZERO:
                used[name] = left
    return used


def _devices(request: DeviceRequest) -> dict[str, int]:
    """Devices by class, in the worst case: All may take 32 (4381-147), of alternatives the one that takes most."""
    alternatives = [request.exactly] if request.exactly is not None else list(request.first_available)
    worst: dict[str, int] = {}
    for asked in alternatives:
        count = ALLOCATION_RESULTS if asked.allocation_mode == MODE_ALL else asked.count
        worst[asked.device_class_name] = max(worst.get(asked.device_class_name, 0), count)
    return worst


def _pod(pod: Pod) -> Usage:
    """A pod that has finished uses nothing but the place of an object."""
    if is_finished(pod):
        return {}
    used: Usage = {"pods": ONE}
    for name, amount in _at_its_peak(pod.spec, limits=False).items():
        used[f"requests.{name}"] = amount
        if name in ("cpu", "memory", "ephemeral-storage"):
            used[name] = amount
    for name, amount in _at_its_peak(pod.spec, limits=True).items():
        used[f"limits.{name}"] = amount
    return used


def _at_its_peak(spec: PodSpec, *, limits: bool) -> Usage:
    """All containers at once, or an init container before them, whichever is more."""
    sidecars: Usage = {}
    peak: Usage = {}
    for container in spec.init_containers:
        asked = _amounts(container, limits=limits)
        if container.restart_policy == "Always":
            sidecars = _sum((sidecars, asked))
            asked = {}
        peak = _larger(peak, _sum((sidecars, asked)))
    running = _sum((sidecars, *(_amounts(container, limits=limits) for container in spec.containers)))
    return _sum((_larger(running, peak), spec.overhead))


def _amounts(container: Container, *, limits: bool) -> Mapping[str, Quantity]:
    if container.resources is None:
        return {}
    return container.resources.limits if limits else container.resources.requests


def _sum(parts: Iterable[Mapping[str, Quantity]]) -> Usage:
    total: Usage = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total[name] + amount if name in total else amount
    return total


def _larger(first: Usage, second: Usage) -> Usage:
    return {name: max(first.get(name, ZERO), second.get(name, ZERO)) for name in {**first, **second}}


def is_in_scope(spec: ResourceQuotaSpec, obj: Object) -> bool:
    """Whether a quota counts an object at all. A quota with scopes counts only pods (and those that match them)."""
    requirements = [ScopedResourceSelectorRequirement(scope_name=name, operator="Exists") for name in spec.scopes]
    if spec.scope_selector is not None:
        requirements += spec.scope_selector.match_expressions
    if not requirements:
        return True
    return isinstance(obj, Pod) and all(_in_scope(one, obj) for one in requirements)


def _in_scope(requirement: ScopedResourceSelectorRequirement, pod: Pod) -> bool:
    name = requirement.scope_name
    if name == "PriorityClass":
        return _matches(requirement, pod.spec.priority_class_name)
    has_deadline = pod.spec.active_deadline_seconds is not None
    best_effort = not any(
        container.resources is not None and (container.resources.requests or container.resources.limits)
        for container in (*pod.spec.containers, *pod.spec.init_containers)
    )
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


def counted_kinds(name: str) -> tuple[Kind, ...]:
    """The kinds whose objects use up a resource of a quota; none if it is none that is known here."""
    kind = counted_kind(name)
    if kind is None:
        return ()
    claims = by_resource("resource.k8s.io", "resourceclaims") if may_count_claims(name) else None
    return (kind, claims) if claims is not None else (kind,)


def counted_kind(name: str) -> Kind | None:
    """The kind whose objects use up a resource of a quota first; None if it is none that is known here."""
    if name.startswith(COUNT):
        plural, _, group = name.removeprefix(COUNT).partition(".")
        return by_resource(group, plural)
    if name.endswith(f".{DEVICES}"):
        return by_resource("resource.k8s.io", "resourceclaims")
    if name in COUNTED:
        return by_resource("", name)
    if name == "requests.storage":
        return by_resource("", "persistentvolumeclaims")
    if name in ("pods", "cpu", "memory", "ephemeral-storage") or name.startswith(("requests.", "limits.")):
        return by_resource("", "pods")
    return None
