"""What of an object decisions depend on. Everything else stays behind: a list of what is kept can forget no secret.

Of pods that is what the scheduler and evictions read: no image, command, environment, volume or account. Opaque
parameters for drivers, messages and annotations that are not about devices are left out everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from msgspec.structs import replace

from dray.api import kinds
from dray.api.conditions import DISRUPTION_TARGET, POD_SCHEDULED
from dray.api.generated.core import (
    Container,
    ContainerPort,
    Namespace,
    Node,
    NodeSpec,
    NodeStatus,
    Pod,
    PodSpec,
    PodStatus,
)
from dray.api.generated.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from dray.api.generated.scheduling import PodGroup, PodGroupStatus
from dray.api.meta import Object, ObjectMeta
from dray.api.registry import Kind
from dray.api.resource import (
    AllocationResult,
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourceClaimTemplate,
)
from dray.api.resource.taint import DeviceTaintRuleStatus

RECORDED: Final[tuple[Kind, ...]] = (
    kinds.NAMESPACES,
    kinds.NODES,
    kinds.CLASSES,
    kinds.SLICES,
    kinds.PATCHES,
    kinds.RULES,
    kinds.BUDGETS,
    kinds.POD_GROUPS,
    kinds.TEMPLATES,
    kinds.CLAIMS,
    kinds.PODS,
)
"""In the order in which they are read at the start: what others refer to comes first."""

NEEDED: Final = (kinds.NODES, kinds.SLICES, kinds.CLAIMS, kinds.PODS)
"""Without these nobody can tell who got which devices when."""

IMAGE: Final = "recorded"
_ANNOTATIONS: Final = ("dray.dev/", "resource.kubernetes.io/", "kubernetes.io/config.mirror")
_POD_CONDITIONS: Final = (POD_SCHEDULED, DISRUPTION_TARGET)
_NODE_CONDITIONS: Final = ("Ready",)


def essence(obj: Object) -> Object:
    """An object with nothing but what is kept of its kind."""
    keep = _KEEPERS.get(type(obj))
    kept = replace(obj, metadata=_metadata(obj.metadata))
    return kept if keep is None else keep(kept)


def _metadata(meta: ObjectMeta) -> ObjectMeta:
    return ObjectMeta(
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        creation_timestamp=meta.creation_timestamp,
        deletion_timestamp=meta.deletion_timestamp,
        deletion_grace_period_seconds=meta.deletion_grace_period_seconds,
        labels=meta.labels,
        annotations={key: value for key, value in meta.annotations.items() if key.startswith(_ANNOTATIONS)},
        owner_references=meta.owner_references,
    )


def _namespace(obj: Namespace) -> Namespace:
    return Namespace(kind=obj.kind, api_version=obj.api_version, metadata=obj.metadata)


def _node(node: Node) -> Node:
    spec, status = node.spec, node.status
    return replace(
        node,
        spec=NodeSpec(taints=spec.taints, unschedulable=spec.unschedulable),
        status=NodeStatus(
            capacity=status.capacity,
            allocatable=status.allocatable,
            declared_features=status.declared_features,
            conditions=_conditions(status.conditions, _NODE_CONDITIONS),
        ),
    )


def _conditions(conditions: Iterable[Any], wanted: tuple[str, ...]) -> tuple[Any, ...]:
    """Without messages, and without the times at which somebody looked: those change all the time."""
    return tuple(
        type(one)(type=one.type, status=one.status, reason=one.reason, last_transition_time=one.last_transition_time)
        for one in conditions
        if one.type in wanted
    )


def _pod(pod: Pod) -> Pod:
    return replace(pod, spec=_pod_spec(pod.spec), status=_pod_status(pod.status))


def _pod_spec(spec: PodSpec) -> PodSpec:
    return PodSpec(
        active_deadline_seconds=spec.active_deadline_seconds,
        affinity=spec.affinity,
        containers=tuple(map(_container, spec.containers)),
        init_containers=tuple(map(_container, spec.init_containers)),
        host_network=spec.host_network,
        node_name=spec.node_name,
        node_selector=spec.node_selector,
        overhead=spec.overhead,
        preemption_policy=spec.preemption_policy,
        priority=spec.priority,
        resource_claims=spec.resource_claims,
        resources=spec.resources,
        restart_policy=spec.restart_policy,
        scheduler_name=spec.scheduler_name,
        scheduling_gates=spec.scheduling_gates,
        scheduling_group=spec.scheduling_group,
        termination_grace_period_seconds=spec.termination_grace_period_seconds,
        tolerations=spec.tolerations,
        topology_spread_constraints=spec.topology_spread_constraints,
    )


def _container(container: Container) -> Container:
    ports = tuple(
        ContainerPort(
            container_port=port.container_port, host_ip=port.host_ip, host_port=port.host_port, protocol=port.protocol
        )
        for port in container.ports
        if port.host_port
    )
    return Container(
        name=container.name,
        image=IMAGE,
        resources=container.resources,
        restart_policy=container.restart_policy,
        ports=ports,
    )


def _pod_status(status: PodStatus) -> PodStatus:
    return PodStatus(
        phase=status.phase,
        conditions=_conditions(status.conditions, _POD_CONDITIONS),
        resource_claim_statuses=status.resource_claim_statuses,
        extended_resource_claim_status=status.extended_resource_claim_status,
    )


def _claim(claim: ResourceClaim) -> ResourceClaim:
    allocation = claim.status.allocation
    status = ResourceClaimStatus(allocation=_allocation(allocation), reserved_for=claim.status.reserved_for)
    return replace(claim, spec=_claim_spec(claim.spec), status=status)


def _claim_spec(spec: ResourceClaimSpec) -> ResourceClaimSpec:
    return replace(spec, devices=replace(spec.devices, config=())) if spec.devices.config else spec


def _allocation(allocation: AllocationResult | None) -> AllocationResult | None:
    if allocation is None or not allocation.devices.config:
        return allocation
    return replace(allocation, devices=replace(allocation.devices, config=()))


def _template(template: ResourceClaimTemplate) -> ResourceClaimTemplate:
    inner = template.spec
    spec = replace(inner, metadata=_metadata(inner.metadata), spec=_claim_spec(inner.spec))
    return replace(template, spec=spec)


def _class(found: DeviceClass) -> DeviceClass:
    return replace(found, spec=replace(found.spec, config=())) if found.spec.config else found


def _rule(rule: DeviceTaintRule) -> DeviceTaintRule:
    return replace(rule, status=DeviceTaintRuleStatus())


def _budget(budget: PodDisruptionBudget) -> PodDisruptionBudget:
    return replace(budget, status=PodDisruptionBudgetStatus())


def _group(group: PodGroup) -> PodGroup:
    return replace(group, status=PodGroupStatus(resource_claim_statuses=group.status.resource_claim_statuses))


_KEEPERS: Final[dict[type[Object], Callable[[Any], Object]]] = {
    Namespace: _namespace,
    Node: _node,
    Pod: _pod,
    ResourceClaim: _claim,
    ResourceClaimTemplate: _template,
    DeviceClass: _class,
    DeviceTaintRule: _rule,
    PodDisruptionBudget: _budget,
    PodGroup: _group,
}
