"""What a node may write: itself, its pods' status, its Lease, its slices and its CSINode, and nothing of other nodes.

RBAC cannot say this, because it knows kinds and names, but not contents. A node is a user `system:node:NAME` in the
group `system:nodes`; the checks look at the object as stored and as it is to become.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from dray.api.generated.core import Node, PersistentVolumeClaim, Pod
from dray.api.meta import Object
from dray.api.pods import MIRROR_ANNOTATION
from dray.api.resource import ResourceSlice
from dray.api.well_known import LEASE_NAMESPACE
from dray.server.security.authorization import Attributes
from dray.server.security.identity import NODE_PREFIX, NODES, Identity
from dray.server.security.node_labels import forbidden_labels
from dray.server.security.node_requests import (
    May,
    check_certificate_request,
    check_pod_certificate_request,
    check_token_request,
)
from dray.server.security.pod_references import references
from dray.server.security.pool_ownership import SlicesInPool, check_pool
from dray.server.security.tokens import ObjectLookup


def is_node(identity: Identity) -> bool:
    """Whether the restrictions for nodes apply."""
    return NODES in identity.groups


def node_name(identity: Identity) -> str | None:
    """The node that an identity in `system:nodes` is; None if its user name does not say."""
    return identity.user.removeprefix(NODE_PREFIX) or None if identity.user.startswith(NODE_PREFIX) else None


def check_node_write(
    identity: Identity,
    attributes: Attributes,
    old: Object | None,
    new: Object | None,
    lookup: ObjectLookup,
    slices_in_pool: SlicesInPool,
    *,
    may: May,
) -> str | None:
    """Why a node may not make this write; None if it may, or if the identity is not a node.

    `old` is the stored object (for an eviction: the pod), `new` what is sent; None where there is none. A collection is
    deleted object by object: this is asked for each.
    """
    if not is_node(identity):
        return None
    name = node_name(identity)
    if name is None:
        return f'could not determine node from user "{identity.user}"'
    check = _CHECKS.get((attributes.group, attributes.resource))
    return None if check is None else check(_Write(name, attributes, old, new, lookup, slices_in_pool, may))


class _Write(msgspec.Struct, frozen=True):
    """One write of one node."""

    node: str
    attributes: Attributes
    old: Any
    new: Any
    lookup: ObjectLookup
    slices_in_pool: SlicesInPool
    may: May

    @property
    def deletes(self) -> bool:
        return self.attributes.verb in ("delete", "deletecollection")

    @property
    def name(self) -> str:
        """The name of the object, which a create has only in the object."""
        if self.attributes.name:
            return self.attributes.name
        obj = self.new if self.new is not None else self.old
        return obj.metadata.name if obj is not None else ""


def _check_node(write: _Write) -> str | None:
    if write.name != write.node:
        return f'node "{write.node}" is not allowed to modify node "{write.name}"'
    if write.deletes or not isinstance(write.new, Node):
        return None
    old, new = write.old, write.new
    if new.spec.config_source is not None and (old is None or old.spec.config_source != new.spec.config_source):
        return f'node "{write.node}" is not allowed to set configSource'
    if old is not None and old.spec.taints != new.spec.taints:
        return f'node "{write.node}" is not allowed to modify taints'
    if old is not None and old.metadata.owner_references != new.metadata.owner_references:
        return f'node "{write.node}" is not allowed to modify ownerReferences'
    labels = forbidden_labels({} if old is None else old.metadata.labels, new.metadata.labels)
    if labels:
        return f'node "{write.node}" is not allowed to modify labels: {", ".join(labels)}'
    return None


def _check_pod(write: _Write) -> str | None:
    subresource = write.attributes.subresource
    if subresource == "status":
        return _check_pod_status(write)
    if subresource == "eviction":
        return None if _runs_here(write) else f'node "{write.node}" can only evict pods that run on itself'
    if subresource:
        return f'unexpected pod subresource "{subresource}", only "status" and "eviction" are allowed'
    if write.deletes:
        own = _runs_here(write)
        return None if own else f'node "{write.node}" can only delete pods with spec.nodeName set to itself'
    if write.old is not None:
        return f'node "{write.node}" can only create and delete mirror pods'
    return _check_mirror_pod(write)


def _runs_here(write: _Write) -> bool:
    return isinstance(write.old, Pod) and write.old.spec.node_name == write.node


def _check_pod_status(write: _Write) -> str | None:
    if not _runs_here(write):
        return f'node "{write.node}" can only update pod status for pods with spec.nodeName set to itself'
    old, new = write.old, write.new
    if old.metadata.labels != new.metadata.labels:
        return f'node "{write.node}" cannot update labels through pod status'
    # Which claims a pod has is for the claim controller and the scheduler to say.
    if (
        old.status.resource_claim_statuses != new.status.resource_claim_statuses
        or old.status.extended_resource_claim_status != new.status.extended_resource_claim_status
        or old.status.node_allocatable_resource_claim_statuses != new.status.node_allocatable_resource_claim_statuses
    ):
        return f'node "{write.node}" cannot update resource claim statuses'
    return None


def _check_mirror_pod(write: _Write) -> str | None:
    pod: Pod = write.new
    if MIRROR_ANNOTATION not in pod.metadata.annotations:
        return f'pod does not have "{MIRROR_ANNOTATION}" annotation, node "{write.node}" can only create mirror pods'
    if pod.spec.node_name != write.node:
        return f'node "{write.node}" can only create pods with spec.nodeName set to itself'
    owners = pod.metadata.owner_references
    if len(owners) != 1 or (owners[0].api_version, owners[0].kind, owners[0].name) != ("v1", "Node", write.node):
        return f'node "{write.node}" can only create pods with a single owner reference set to itself'
    if not owners[0].controller or owners[0].block_owner_deletion:
        return f'node "{write.node}" must be the controller of the pod and must not set blockOwnerDeletion'
    node = write.lookup("nodes", "", write.node)
    if node is None or node.metadata.uid != owners[0].uid:
        return f'the owner reference does not have the uid of node "{write.node}"'
    reference = next(references(pod), None)
    return f'node "{write.node}" can not create pods that reference {reference[0]}' if reference else None


def _check_volume_claim(write: _Write) -> str | None:
    if write.attributes.subresource != "status" or not isinstance(write.old, PersistentVolumeClaim):
        return "may only update PVC status"
    same = _beyond_resize(write.old) == _beyond_resize(write.new)
    return None if same else f'node "{write.node}" may only update capacity and conditions of a PVC'


def _beyond_resize(claim: PersistentVolumeClaim) -> tuple[Any, ...]:
    """All of a volume claim that a node leaves alone when it has resized the volume."""
    status = replace(claim.status, capacity={}, conditions=(), allocated_resources={}, allocated_resource_statuses={})
    metadata = replace(claim.metadata, resource_version="", managed_fields=())
    return metadata, claim.spec, status


def _check_token(write: _Write) -> str | None:
    if write.attributes.subresource != "token":
        return None
    where = write.attributes
    return check_token_request(write.node, where.namespace, where.name, write.new, write.lookup, may=write.may)


def _check_lease(write: _Write) -> str | None:
    if write.attributes.namespace != LEASE_NAMESPACE:
        return f'can only access leases in the "{LEASE_NAMESPACE}" system namespace'
    own = write.name == write.node
    return None if own else "can only access node lease with the same name as the requesting node"


def _check_csi_node(write: _Write) -> str | None:
    return None if write.name == write.node else "can only access CSINode with the same name as the requesting node"


def _check_slice(write: _Write) -> str | None:
    """4381-179, SVS-63: slices of this node, before and after the write, in pools of this node."""
    verb = "delete" if write.deletes else "create" if write.old is None else "update"
    for obj in (write.old, write.new):
        if isinstance(obj, ResourceSlice) and obj.spec.node_name != write.node:
            return f"can only {verb} ResourceSlice with the same NodeName as the requesting node"
    return check_pool(write.node, write.old, write.new, write.slices_in_pool, write.lookup)


def _check_claim(write: _Write) -> str | None:
    """4381-178: whatever roles somebody gives to nodes, claims stay read-only for them."""
    return f'node "{write.node}" can only read ResourceClaims'


def _check_certificate(write: _Write) -> str | None:
    return check_certificate_request(write.node, write.new) if write.old is None else None


def _check_pod_certificate(write: _Write) -> str | None:
    if write.old is not None:
        return f'node "{write.node}" can only create PodCertificateRequests'
    return check_pod_certificate_request(write.node, write.new, write.lookup, may=write.may)


_CHECKS: dict[tuple[str, str], Callable[[_Write], str | None]] = {
    ("", "nodes"): _check_node,
    ("", "pods"): _check_pod,
    ("", "persistentvolumeclaims"): _check_volume_claim,
    ("", "serviceaccounts"): _check_token,
    ("certificates.k8s.io", "certificatesigningrequests"): _check_certificate,
    ("certificates.k8s.io", "podcertificaterequests"): _check_pod_certificate,
    ("coordination.k8s.io", "leases"): _check_lease,
    ("storage.k8s.io", "csinodes"): _check_csi_node,
    ("resource.k8s.io", "resourceslices"): _check_slice,
    ("resource.k8s.io", "resourceclaims"): _check_claim,
}
