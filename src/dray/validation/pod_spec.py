"""The spec of a pod, and of the pod templates in workloads."""

from __future__ import annotations

from collections import Counter
from typing import Final

from dray.api.field import forbidden, invalid, not_supported, required
from dray.api.generated.core import PodSpec
from dray.validation import check, names
from dray.validation.affinity import validate_affinity, validate_spread
from dray.validation.containers import PodParts, validate_containers, validate_init_containers
from dray.validation.context import Errors
from dray.validation.ephemeral_containers import validate_debuggers
from dray.validation.metadata import validate_labels
from dray.validation.node_taints import validate_tolerations
from dray.validation.pod_claims import validate_container_claims, validate_pod_claims
from dray.validation.pod_dns import is_address, validate_dns
from dray.validation.pod_security import validate_pod_security
from dray.validation.resource_amounts import (
    container_resource,
    is_huge_page,
    standard_name,
    validate_amounts,
    validate_requirements,
)
from dray.validation.volumes import validate_volumes

RESTART_POLICIES: Final = ("Always", "Never", "OnFailure")
PREEMPTION_POLICIES: Final = ("Never", "PreemptLowerPriority")
SYSTEMS: Final = ("linux", "windows")
_INT32_MAX: Final = 2**31 - 1
_POD_LEVEL: Final = ("cpu", "memory")
_LONGEST_HOST_NAME: Final = 64
_TOP_RESPONDER: Final = 100_000
_OWN_RESPONDERS: Final = 1000


def validate_pod_spec(
    errors: Errors,
    spec: PodSpec,
    path: str,
    *,
    is_pod: bool,
    is_mirror: bool = False,
) -> None:
    """Everything that can be said of a spec by itself. `is_pod` is false for templates."""
    if spec.termination_grace_period_seconds is None:
        errors.append(required(f"{path}.terminationGracePeriodSeconds"))
    parts = PodParts.of(spec, validate_volumes(errors, spec.volumes, f"{path}.volumes"))
    if spec.resource_claims:
        validate_pod_claims(errors, spec.resource_claims, f"{path}.resourceClaims", is_mirror=is_mirror)
    validate_containers(errors, spec.containers, f"{path}.containers", parts)
    if spec.init_containers:
        taken = frozenset(container.name for container in spec.containers)
        validate_init_containers(errors, spec.init_containers, f"{path}.initContainers", parts, taken)
    if spec.ephemeral_containers:
        validate_debuggers(errors, spec, f"{path}.ephemeralContainers", parts)
    if spec.resources is not None:
        _validate_pod_resources(errors, spec, f"{path}.resources", parts)
    if spec.host_network:
        _validate_host_network(errors, spec, f"{path}.containers", is_pod=is_pod)
    check.required_one_of(errors, f"{path}.restartPolicy", spec.restart_policy, RESTART_POLICIES)
    validate_dns(errors, spec, path)
    if spec.security_context is not None:
        validate_pod_security(errors, spec.security_context, f"{path}.securityContext")
    if spec.share_process_namespace and spec.host_pid:
        where = f"{path}.shareProcessNamespace"
        errors.append(invalid(where, True, "hostPID and shareProcessNamespace exclude each other"))
    validate_labels(errors, spec.node_selector, f"{path}.nodeSelector")
    if spec.affinity is not None:
        validate_affinity(errors, spec.affinity, f"{path}.affinity")
    if spec.topology_spread_constraints:
        validate_spread(errors, spec.topology_spread_constraints, f"{path}.topologySpreadConstraints")
    _validate_gates(errors, spec, path)
    if spec.eviction_responders:
        _validate_responders(errors, spec, path)
    validate_tolerations(errors, spec.tolerations, f"{path}.tolerations")
    _validate_names(errors, spec, path)
    _validate_numbers(errors, spec, path)


def _validate_names(errors: Errors, spec: PodSpec, path: str) -> None:
    for field, value, rule in (
        ("serviceAccountName", spec.service_account_name, names.dns_subdomain),
        ("nodeName", spec.node_name, names.dns_subdomain),
        ("hostname", spec.hostname, names.dns_label),
        ("subdomain", spec.subdomain, names.dns_label),
        ("priorityClassName", spec.priority_class_name, names.dns_subdomain),
    ):
        if value:
            check.name(errors, f"{path}.{field}", value, rule)
    if spec.runtime_class_name is not None:
        check.name(errors, f"{path}.runtimeClassName", spec.runtime_class_name, names.dns_subdomain)
    if spec.hostname_override is not None:
        _validate_own_host_name(errors, spec, spec.hostname_override, f"{path}.hostnameOverride")
    if spec.preemption_policy is not None:
        check.required_one_of(errors, f"{path}.preemptionPolicy", spec.preemption_policy, PREEMPTION_POLICIES)
    if spec.scheduling_group is not None:
        where = f"{path}.schedulingGroup.podGroupName"
        if spec.scheduling_group.pod_group_name is None:
            errors.append(invalid(where, None, "must specify one of: `podGroupName`"))
        else:
            check.name(errors, where, spec.scheduling_group.pod_group_name, names.dns_subdomain)
    if spec.os is not None:
        # Kubernetes reports a name that is missing below the field, and one that is wrong at it.
        check.required_one_of(errors, f"{path}.os" if spec.os.name else f"{path}.os.name", spec.os.name, SYSTEMS)
    for index, alias in enumerate(spec.host_aliases):
        inner = f"{path}.hostAliases[{index}]"
        if not is_address(alias.ip):
            errors.append(invalid(f"{inner}.ip", alias.ip, "must be an IP address"))
        for position, hostname in enumerate(alias.hostnames):
            check.name(errors, f"{inner}.hostnames[{position}]", hostname, names.dns_subdomain)


def _validate_own_host_name(errors: Errors, spec: PodSpec, name: str, path: str) -> None:
    """A name of the pod's choice, which cannot be that of the node nor a full one."""
    for field, is_set in (("setHostnameAsFQDN", spec.set_hostname_as_fqdn), ("hostNetwork", spec.host_network)):
        if is_set:
            errors.append(forbidden(path, f"may not be specified when {field} is true"))
    check.length(errors, path, name, _LONGEST_HOST_NAME)
    check.name(errors, path, name, names.dns_subdomain)


def _validate_numbers(errors: Errors, spec: PodSpec, path: str) -> None:
    deadline = spec.active_deadline_seconds
    if deadline is not None and not 1 <= deadline <= _INT32_MAX:
        errors.append(invalid(f"{path}.activeDeadlineSeconds", deadline, f"must be between 1 and {_INT32_MAX}"))
    if spec.overhead:
        validate_amounts(errors, spec.overhead, f"{path}.overhead.limits", container_resource)


def _validate_gates(errors: Errors, spec: PodSpec, path: str) -> None:
    for index, readiness in enumerate(spec.readiness_gates):
        where = f"{path}.readinessGates[{index}].conditionType"
        check.name(errors, where, readiness.condition_type, names.label_key)
    for index, gate in enumerate(spec.scheduling_gates):
        check.name(errors, f"{path}.schedulingGates[{index}]", gate.name, names.label_key)
    check.unique(errors, f"{path}.schedulingGates", (gate.name for gate in spec.scheduling_gates))


def _validate_responders(errors: Errors, spec: PodSpec, path: str) -> None:
    """Who is asked before the pod is evicted: by qualified name, with a priority; the lowest are Kubernetes' own."""
    if spec.scheduling_group is not None:
        errors.append(forbidden(f"{path}.schedulingGroup", "may not be set when evictionResponders is set"))
    for index, responder in enumerate(spec.eviction_responders):
        inner = f"{path}.evictionResponders[{index}]"
        check.name(errors, f"{inner}.name", responder.name, names.label_key)
        if "/" not in responder.name:
            errors.append(invalid(f"{inner}.name", responder.name, "must include a prefix (e.g. 'example.com/key')"))
        priority = responder.priority
        if priority is None:
            errors.append(required(f"{inner}.priority"))
        elif not 0 <= priority <= _TOP_RESPONDER:
            errors.append(invalid(f"{inner}.priority", priority, f"must be between 0 and {_TOP_RESPONDER}"))
        elif priority < _OWN_RESPONDERS and not responder.name.partition("/")[0].endswith("k8s.io"):
            told = f"priorities 0-{_OWN_RESPONDERS - 1} are reserved for responders with *.k8s.io suffix"
            errors.append(invalid(f"{inner}.priority", priority, told))


def _validate_host_network(errors: Errors, spec: PodSpec, path: str, *, is_pod: bool) -> None:
    """On the host's network a port has the same number outside as inside."""
    for index, container in enumerate(spec.containers):
        for position, port in enumerate(container.ports):
            if (is_pod or port.host_port) and port.host_port != port.container_port:
                where = f"{path}[{index}].ports[{position}].hostPort"
                errors.append(invalid(where, port.host_port, "must match `containerPort` when `hostNetwork` is true"))


def _validate_pod_resources(errors: Errors, spec: PodSpec, path: str, parts: PodParts) -> None:
    """Resources of the pod as a whole: cpu, memory and huge pages, at least as much as its containers request."""
    resources = spec.resources
    if resources is None:
        return
    for field, amounts in (("limits", resources.limits), ("requests", resources.requests)):
        for name in amounts:
            if name not in _POD_LEVEL and not is_huge_page(name) and not standard_name(name):
                errors.append(not_supported(f"{path}.{field}[{name}]", name, (*_POD_LEVEL, "hugepages-")))
    if resources.claims:
        errors.append(forbidden(f"{path}.claims", "claims belong to containers"))
        validate_container_claims(errors, resources.claims, f"{path}.claims", parts.claims)
    validate_requirements(errors, resources, path, standard_name)
    requested = _requested(spec)
    for name, amount in resources.requests.items():
        if amount.nanos < requested.get(name, 0):
            where = f"{path}.requests[{name}]"
            errors.append(invalid(where, str(amount), "must not be less than what the containers request"))
    for index, container in enumerate(spec.containers):
        for name, limit in container.resources.limits.items():
            if name in resources.limits and limit > resources.limits[name]:
                where = f"{path}.containers[{index}][{name}].limits"
                errors.append(invalid(where, str(limit), "must not exceed the limit of the pod"))


def _requested(spec: PodSpec) -> dict[str, int]:
    """How much the containers need at once: all that run together, or the largest step of the initialisation."""
    total: Counter[str] = Counter()
    for container in spec.containers:
        for name, amount in container.resources.requests.items():
            total[name] += amount.nanos
    sidecars: Counter[str] = Counter()
    peak: Counter[str] = Counter()
    for container in spec.init_containers:
        for name, amount in container.resources.requests.items():
            together = sidecars[name] + amount.nanos
            peak[name] = max(peak[name], together)
            if container.restart_policy == "Always":
                sidecars[name] = together
    return {name: max(total[name] + sidecars[name], peak[name]) for name in total.keys() | peak.keys()}
