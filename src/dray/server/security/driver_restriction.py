"""Device drivers: whose ResourceSlices a driver's ServiceAccount may write, and whose claims it may read.

RBAC gives a driver slices of every driver and every node. A ServiceAccount whose token names a node (that of the pod
which it was issued to) acts for that node alone: it writes slices of that node into pools of that node, and if it is a
driver, that is if it may create slices, it reaches the slices of its node and the claims of pods there. What
acts for several nodes, such as a controller for devices on a network, needs the verb with `arbitrary-node:` before it
on `resourceslices/driver` or `resourceclaims/driver`, by name of the driver, as Kubernetes asks of those who write the
status of devices.

Two annotations of a ServiceAccount limit it further, whatever its roles say:

    dray/slices-of-driver: gpu.example.com      only slices of this driver (4381-187)
    dray/slices-of-own-node: "true"             only slices of the node of the pod that its token was issued for
                                                (4381-179)

A token may be bound to a node alone, by whoever may ask for tokens of the account: that limits it all the same, and
gives it nothing.
"""

from __future__ import annotations

from dray.api.meta import Object
from dray.api.registry import RESOURCE_GROUP
from dray.api.resource import ResourceClaim, ResourceSlice
from dray.api.resource.allocated_node import allocated_node
from dray.server.security.authorization import Attributes
from dray.server.security.identity import Identity, bound_node, node_of_pod, split_service_account_user
from dray.server.security.node_reads import PodsOnNode, is_used_on
from dray.server.security.node_requests import May
from dray.server.security.pool_ownership import SlicesInPool, check_pool
from dray.server.security.tokens import ObjectLookup

OF_DRIVER = "dray/slices-of-driver"
OF_OWN_NODE = "dray/slices-of-own-node"
ARBITRARY_NODE = "arbitrary-node:"

_SLICES = "resourceslices"
_CLAIMS = "resourceclaims"
_CLAIM_STATUS = "resourceclaims/status"
_READS = frozenset({"get", "list", "watch"})
_CHANGES = {
    _CLAIM_STATUS: frozenset({"update", "patch", "delete"}),
    _SLICES: frozenset({"patch"}),
}
"""Asked before the object is looked at. Slices that are sent or deleted as a whole are refused by `check_driver_write`,
after policies, which may have more to say; whether a patch fits would tell what is in a slice."""
_CREATE_SLICES = Attributes("create", RESOURCE_GROUP, _SLICES)


def check_driver_write(
    identity: Identity,
    attributes: Attributes,
    old: Object | None,
    new: Object | None,
    lookup: ObjectLookup,
    slices_in_pool: SlicesInPool,
    *,
    may: May,
) -> str | None:
    """Why a ServiceAccount may not write this slice; None if it may, or nothing limits it."""
    account = split_service_account_user(identity.user)
    if account is None or (attributes.group, attributes.resource) != (RESOURCE_GROUP, _SLICES):
        return None
    slices = [obj for obj in (old, new) if isinstance(obj, ResourceSlice)]
    why = _check_annotations(identity, slices, lookup("serviceaccounts", *account))
    node = bound_node(identity)
    if (
        why is not None
        or not node
        or all(_may_for_any(attributes.verb, each.spec.driver, may, attributes) for each in slices)
    ):
        return why
    for each in slices:
        if each.spec.node_name != node:
            whose = f'nodeName "{each.spec.node_name}"' if each.spec.node_name else "no nodeName"
            return (
                f'{identity.user} runs on node "{node}" and can only write ResourceSlices with that nodeName, but '
                f'ResourceSlice "{each.metadata.name}" of pool "{each.spec.pool.name}" has {whose} (devices of other '
                f"nodes need the verb {ARBITRARY_NODE}{attributes.verb} on resourceslices/driver)"
            )
    return check_pool(node, old, new, slices_in_pool, lookup)


def _check_annotations(identity: Identity, slices: list[ResourceSlice], account: Object | None) -> str | None:
    annotations = account.metadata.annotations if account is not None else {}
    driver = annotations.get(OF_DRIVER)
    if driver is not None and any(each.spec.driver != driver for each in slices):
        return f'{identity.user} can only write ResourceSlices of driver "{driver}"'
    if annotations.get(OF_OWN_NODE) == "true":
        node = node_of_pod(identity)
        if not node:
            return f"{identity.user} needs a token bound to a pod on a node to write ResourceSlices"
        if any(each.spec.node_name != node for each in slices):
            return f'{identity.user} on node "{node}" can only write ResourceSlices with that nodeName'
    return None


def check_driver_read(
    identity: Identity, attributes: Attributes, pods_on_node: PodsOnNode, lookup: ObjectLookup, may: May
) -> str | None:
    """Why a driver may not reach these slices or claims; None if it may, or if the identity is no driver on a node.

    What a change may be is for `check_driver_write`; whom a patch is about is asked before, as it is of nodes.
    """
    if attributes.group != RESOURCE_GROUP or attributes.full_resource not in (_SLICES, _CLAIMS, _CLAIM_STATUS):
        return None
    node = bound_node(identity)
    changes = attributes.verb in _CHANGES.get(attributes.full_resource, ())
    if not node or not (changes or attributes.verb in _READS) or not may(_CREATE_SLICES):
        return None
    if any(_may_for_any(attributes.verb, driver, may, attributes) for driver in _drivers_of(attributes, lookup)):
        return None
    if attributes.subresource and may(Attributes(attributes.verb, RESOURCE_GROUP, _CLAIMS, "binding")):
        return None  # who writes allocations has to do with claims of all nodes
    own = _is_own_slice if attributes.resource == _SLICES else _is_own_claim
    if own(node, attributes, pods_on_node, lookup):
        return None
    what = "change" if changes else "read"
    return (
        f'a driver on node "{node}" can only {what} {attributes.resource} of that node (those of other nodes need the '
        f"verb {ARBITRARY_NODE}{attributes.verb} on {attributes.resource}/driver)"
    )


def _may_for_any(verb: str, driver: str, may: May, asked: Attributes) -> bool:
    return may(Attributes(f"{ARBITRARY_NODE}{verb}", RESOURCE_GROUP, asked.resource, "driver", asked.namespace, driver))


def _drivers_of(attributes: Attributes, lookup: ObjectLookup) -> set[str]:
    """The drivers whose slices or claims are asked for; the empty one if it may be any."""
    found = lookup(f"{attributes.resource}.{RESOURCE_GROUP}", attributes.namespace, attributes.name)
    if isinstance(found, ResourceSlice):
        return {found.spec.driver}
    if isinstance(found, ResourceClaim) and found.status.allocation is not None:
        return {result.driver for result in found.status.allocation.devices.results}
    return {dict(attributes.fields).get("spec.driver", "")}


def _is_own_slice(node: str, attributes: Attributes, _: PodsOnNode, lookup: ObjectLookup) -> bool:
    if attributes.verb in ("list", "watch"):
        return attributes.selects("spec.nodeName", node)
    found = lookup(f"{_SLICES}.{RESOURCE_GROUP}", "", attributes.name)
    if not isinstance(found, ResourceSlice):
        return bool(attributes.name)  # so that the answer is 404
    return found.spec.node_name == node


def _is_own_claim(node: str, attributes: Attributes, pods_on_node: PodsOnNode, lookup: ObjectLookup) -> bool:
    if not attributes.name or not attributes.namespace:
        return False
    if is_used_on(node, attributes, pods_on_node):
        return True
    found = lookup(f"{_CLAIMS}.{RESOURCE_GROUP}", attributes.namespace, attributes.name)
    if not isinstance(found, ResourceClaim):
        return True  # so that the answer is 404
    return allocated_node(found.status.allocation) == node
