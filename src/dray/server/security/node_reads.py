"""What a node may read: of secrets and the like only those that its pods use, so that a node gives away no others."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dray.api.generated.core import Pod
from dray.server.security.authorization import Attributes
from dray.server.security.identity import Identity
from dray.server.security.node_restriction import LEASE_NAMESPACE, is_node, node_name
from dray.server.security.pod_references import references

PodsOnNode = Callable[[str], Iterable[Pod]]

_BY_POD = frozenset(
    {
        ("", "secrets"),
        ("", "configmaps"),
        ("", "persistentvolumeclaims"),
        ("", "serviceaccounts"),
        ("resource.k8s.io", "resourceclaims"),
    }
)


def check_node_read(identity: Identity, attributes: Attributes, pods_on_node: PodsOnNode) -> str | None:
    """Why a node may not get, list or watch this; None if it may, or if the identity is not a node.

    A list or watch of what depends on pods needs a name, too (the `metadata.name` field selector).
    """
    if not is_node(identity) or attributes.verb not in ("get", "list", "watch"):
        return None
    name = node_name(identity)
    if name is None:
        return f'could not determine node from user "{identity.user}"'
    resource = (attributes.group, attributes.resource)
    if resource == ("coordination.k8s.io", "leases"):
        own = attributes.namespace == LEASE_NAMESPACE and attributes.name == name
        return None if own else "can only access node lease with the same name as the requesting node"
    if resource not in _BY_POD:
        return None
    if not attributes.name or not attributes.namespace:
        return f'node "{name}" can only read an individual resource of type {attributes.resource}'
    wanted = (attributes.resource, attributes.name)
    for pod in pods_on_node(name):
        if pod.metadata.namespace == attributes.namespace and wanted in references(pod):
            return None
    return f'no relationship found between node "{name}" and this object'
