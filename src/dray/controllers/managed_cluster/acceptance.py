"""What an accepted cluster has on the hub, so that its agent can do its work and nothing else.

Names are those of Open Cluster Management. The agent is the group `system:open-cluster-management:NAME`, as its
certificate may say, or the ServiceAccount AGENT_ACCOUNT in the cluster's namespace. It may read and report on its own
cluster and renew its own lease. Everything but the namespace goes when the cluster goes.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from dray.api.cluster import ManagedCluster
from dray.api.cluster.managed_cluster import (
    AGENT_ACCOUNT,
    CLUSTER_NAME_LABEL,
    CONDITION_HUB_ACCEPTED,
    REGISTRATION_ROLE,
)
from dray.api.conditions import find_condition, with_condition
from dray.api.generated.coordination import Lease, LeaseSpec
from dray.api.generated.core import Namespace, ServiceAccount
from dray.api.generated.rbac import ClusterRole, ClusterRoleBinding, PolicyRule, RoleBinding, RoleRef, Subject
from dray.api.meta import Condition, Object, ObjectMeta, OwnerReference
from dray.api.registry import CLUSTER_GROUP, RBAC_GROUP
from dray.api.times import MicroTime, Time
from dray.placement.availability import LEASE_NAME

AGENT_GROUP: Final = "system:open-cluster-management:{}"

NAMESPACE_TAKEN: Final = "NamespaceTaken"
"""The reason of a hub that would accept a cluster, and has no namespace for it."""


def has_room(cluster: ManagedCluster, namespace: Namespace | None) -> bool:
    """Whether the namespace of a cluster's name is the cluster's own, or is yet to be made."""
    return namespace is None or namespace.metadata.labels.get(CLUSTER_NAME_LABEL) == cluster.metadata.name


def plan_condition(cluster: ManagedCluster, now: Time, *, room: bool) -> tuple[Condition, ...] | None:
    """The conditions with the hub's answer among them; None: as they are. Nobody is denied who was never accepted."""
    wanted = cluster.spec.hub_accepts_client
    found = find_condition(cluster.status.conditions, CONDITION_HUB_ACCEPTED)
    if found is None and not wanted:
        return None
    answer = _denied() if not wanted else _accepted() if room else _no_room(cluster)
    if found is not None and found.status == answer.status and NAMESPACE_TAKEN not in {found.reason, answer.reason}:
        return None
    if found is not None and (found.status, found.reason) == (answer.status, answer.reason):
        return None
    return with_condition(cluster.status.conditions, replace(answer, last_transition_time=now))


def _accepted() -> Condition:
    return _answer("True", "HubClusterAdminAccepted", "Accepted by hub cluster admin")


def _denied() -> Condition:
    return _answer("False", "HubClusterAdminDenied", "Denied by hub cluster admin")


def _no_room(cluster: ManagedCluster) -> Condition:
    name = cluster.metadata.name
    why = f"Namespace {name} is not the cluster's own: choose another name for the cluster, or label the namespace"
    return _answer("False", NAMESPACE_TAKEN, f"{why} {CLUSTER_NAME_LABEL}={name}")


def _answer(status: str, reason: str, message: str) -> Condition:
    return Condition(type=CONDITION_HUB_ACCEPTED, status=status, reason=reason, message=message)


def wanted_objects(cluster: ManagedCluster) -> tuple[Object, ...]:
    """What there is to be on the hub for a cluster that is accepted, or was; in the order of creation."""
    accepted = cluster.spec.hub_accepts_client
    shared = (_namespace(cluster), _account(cluster), _role(cluster, accepted=accepted), _role_binding(cluster))
    return (*shared, registration_binding(cluster)) if accepted else shared


def bindings(cluster: ManagedCluster) -> tuple[RoleBinding | ClusterRoleBinding, ...]:
    """All that gives an agent its rights."""
    return (registration_binding(cluster), _role_binding(cluster))


def registration_binding(cluster: ManagedCluster) -> RoleBinding:
    """What lets the agent work in the cluster's namespace; a cluster that is denied loses it."""
    name = cluster.metadata.name
    return RoleBinding(
        kind="RoleBinding",
        api_version=f"{RBAC_GROUP}/v1",
        metadata=_metadata(cluster, f"{_role_name(name)}:registration", name),
        role_ref=RoleRef(api_group=RBAC_GROUP, kind="ClusterRole", name=REGISTRATION_ROLE),
        subjects=_agents(name),
    )


def first_lease(cluster: ManagedCluster, now: MicroTime) -> Lease:
    """The lease that the agent is to renew."""
    name = cluster.metadata.name
    return Lease(
        kind="Lease",
        api_version="coordination.k8s.io/v1",
        metadata=_metadata(cluster, LEASE_NAME, name),
        spec=LeaseSpec(holder_identity=LEASE_NAME, renew_time=now),
    )


def _namespace(cluster: ManagedCluster) -> Namespace:
    # It stays when the cluster goes: what others put there is theirs to remove.
    metadata = ObjectMeta(name=cluster.metadata.name, labels={CLUSTER_NAME_LABEL: cluster.metadata.name})
    return Namespace(kind="Namespace", api_version="v1", metadata=metadata)


def _account(cluster: ManagedCluster) -> ServiceAccount:
    metadata = _metadata(cluster, AGENT_ACCOUNT, cluster.metadata.name)
    return ServiceAccount(kind="ServiceAccount", api_version="v1", metadata=metadata)


def _role(cluster: ManagedCluster, *, accepted: bool) -> ClusterRole:
    """An agent may look at its cluster, and if that is accepted, change it; admission guards two taints (OCM-32)."""
    verbs = ("get", "list", "watch", "update", "patch") if accepted else ("get", "list", "watch")
    own = (cluster.metadata.name,)
    rules = [PolicyRule(api_groups=(CLUSTER_GROUP,), resources=("managedclusters",), resource_names=own, verbs=verbs)]
    if accepted:
        reports = PolicyRule(
            api_groups=(CLUSTER_GROUP,),
            resources=("managedclusters/status",),
            resource_names=own,
            verbs=("update", "patch"),
        )
        rules.append(reports)
    metadata = _metadata(cluster, _role_name(cluster.metadata.name))
    return ClusterRole(kind="ClusterRole", api_version=f"{RBAC_GROUP}/v1", metadata=metadata, rules=tuple(rules))


def _role_binding(cluster: ManagedCluster) -> ClusterRoleBinding:
    name = _role_name(cluster.metadata.name)
    return ClusterRoleBinding(
        kind="ClusterRoleBinding",
        api_version=f"{RBAC_GROUP}/v1",
        metadata=_metadata(cluster, name),
        role_ref=RoleRef(api_group=RBAC_GROUP, kind="ClusterRole", name=name),
        subjects=_agents(cluster.metadata.name),
    )


def _role_name(cluster: str) -> str:
    return f"open-cluster-management:managedcluster:{cluster}"


def _agents(cluster: str) -> tuple[Subject, ...]:
    return (
        Subject(kind="Group", api_group=RBAC_GROUP, name=AGENT_GROUP.format(cluster)),
        Subject(kind="ServiceAccount", namespace=cluster, name=AGENT_ACCOUNT),
    )


def _metadata(cluster: ManagedCluster, name: str, namespace: str = "") -> ObjectMeta:
    owner = OwnerReference(
        api_version=f"{CLUSTER_GROUP}/v1", kind="ManagedCluster", name=cluster.metadata.name, uid=cluster.metadata.uid
    )
    labels = {CLUSTER_NAME_LABEL: cluster.metadata.name}
    return ObjectMeta(name=name, namespace=namespace, labels=labels, owner_references=(owner,))
