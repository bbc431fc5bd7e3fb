"""What a node may reach: itself, the pods bound to it, what those pods use, and its own slices, Lease and CSINode.

That is asked before anything else is, also of a change that is refused for its content in the end: a patch that is
tried on an object (`test`, a field that cannot be changed) tells what is in it. Of everything else that the role of
nodes lets them read there is nothing to be kept from them: services, classes, trust bundles. A node that is broken into
gives away what its own pods could have given away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dray.api.generated.core import PersistentVolumeClaim, Pod
from dray.api.well_known import LEASE_NAMESPACE
from dray.server.security.authorization import Attributes
from dray.server.security.identity import Identity
from dray.server.security.node_restriction import is_node, node_name
from dray.server.security.pod_references import references
from dray.server.security.tokens import ObjectLookup

PodsOnNode = Callable[[str], Iterable[Pod]]

_VERBS = frozenset({"get", "list", "watch", "deletecollection"})
_CHANGES = frozenset({"update", "patch", "delete"})
_BY_POD = frozenset(
    {
        ("", "secrets"),
        ("", "configmaps"),
        ("", "persistentvolumeclaims"),
        ("", "serviceaccounts"),
        ("resource.k8s.io", "resourceclaims"),
    }
)
_BY_NAME = frozenset({("", "nodes"), ("storage.k8s.io", "csinodes"), ("coordination.k8s.io", "leases")})
_BY_NODE_NAME = {
    ("", "pods"): "pods",
    ("resource.k8s.io", "resourceslices"): "resourceslices.resource.k8s.io",
    ("certificates.k8s.io", "podcertificaterequests"): "podcertificaterequests.certificates.k8s.io",
    ("storage.k8s.io", "volumeattachments"): "volumeattachments.storage.k8s.io",
}
"""Kinds whose `spec.nodeName` says whose they are, and what the store calls them."""


def check_node_read(
    identity: Identity, attributes: Attributes, pods_on_node: PodsOnNode, lookup: ObjectLookup
) -> str | None:
    """Why a node may not get, list, watch or change this; None if it may, or if the identity is not a node.

    A list or watch of what depends on pods needs a name, too (the `metadata.name` field selector); one of pods or
    slices needs the `spec.nodeName` field selector, and so does the deletion of all slices. What a change may be is
    for `node_restriction`.
    """
    if not is_node(identity) or attributes.verb not in _VERBS | _CHANGES:
        return None
    node = node_name(identity)
    if node is None:
        return f'could not determine node from user "{identity.user}"'
    resource = (attributes.group, attributes.resource)
    if resource in _BY_NAME:
        return _check_name(node, attributes)
    if resource in _BY_NODE_NAME:
        return _check_node_name(node, attributes, lookup)
    if resource == ("", "persistentvolumes"):
        mounted = attributes.name in _volumes_on(node, pods_on_node, lookup)
        return None if mounted else _unrelated(node)
    if resource not in _BY_POD:
        return None
    if not attributes.name or not attributes.namespace:
        return f'node "{node}" can only read an individual resource of type {attributes.resource}'
    return None if is_used_on(node, attributes, pods_on_node) else _unrelated(node)


def is_used_on(node: str, attributes: Attributes, pods_on_node: PodsOnNode) -> bool:
    """Whether a pod on a node refers to what is asked for, by its name."""
    wanted = (attributes.resource, attributes.name)
    return any(
        pod.metadata.namespace == attributes.namespace and wanted in references(pod) for pod in pods_on_node(node)
    )


def _check_name(node: str, attributes: Attributes) -> str | None:
    """Objects that have the name of their node."""
    if attributes.name == node and (attributes.resource != "leases" or attributes.namespace == LEASE_NAMESPACE):
        return None
    if attributes.resource == "nodes":
        if attributes.verb in _CHANGES:
            return f'node "{node}" is not allowed to modify node "{attributes.name}"'
        which = f'"{attributes.name}"' if attributes.name else "all nodes"
        return f'node "{node}" cannot read {which}, only its own Node object'
    what = "node lease" if attributes.resource == "leases" else "CSINode"
    return f"can only access {what} with the same name as the requesting node"


def _check_node_name(node: str, attributes: Attributes, lookup: ObjectLookup) -> str | None:
    """Objects that say in `spec.nodeName` whose they are."""
    if attributes.selects("spec.nodeName", node):
        return None
    if not attributes.name:
        what = f"{attributes.verb} {attributes.resource}"
        return f'node "{node}" can only {what} with the field selector spec.nodeName={node}'
    found: Any = lookup(_BY_NODE_NAME[attributes.group, attributes.resource], attributes.namespace, attributes.name)
    if found is None and attributes.verb in _CHANGES:
        return None  # so that the answer is 404, or that it can be made by applying it
    return None if found is not None and found.spec.node_name == node else _unrelated(node)


def _volumes_on(node: str, pods_on_node: PodsOnNode, lookup: ObjectLookup) -> set[str]:
    """The volumes behind the claims for volumes of the pods on a node."""
    names = set()
    for pod in pods_on_node(node):
        for resource, name in references(pod):
            found = lookup(resource, pod.metadata.namespace, name) if resource == "persistentvolumeclaims" else None
            if isinstance(found, PersistentVolumeClaim):
                names.add(found.spec.volume_name)
    return names - {""}


def _unrelated(node: str) -> str:
    return f'no relationship found between node "{node}" and this object'
