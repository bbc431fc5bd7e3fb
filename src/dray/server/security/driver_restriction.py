"""An optional limit for device drivers: which ResourceSlices a driver's ServiceAccount may write.

The role of a driver allows slices of every driver and every node, and nothing separates the drivers on one node
(4381-187). Whoever wants that annotates the driver's ServiceAccount:

    dray/slices-of-driver: gpu.example.com      only slices of this driver
    dray/slices-of-own-node: "true"             only slices of the node that the pod with the token runs on (4381-179)
"""

from __future__ import annotations

from dray.api.meta import Object
from dray.api.resource import ResourceSlice
from dray.server.security.authorization import Attributes
from dray.server.security.identity import NODE_NAME, Identity, split_service_account_user
from dray.server.security.tokens import ObjectLookup

OF_DRIVER = "dray/slices-of-driver"
OF_OWN_NODE = "dray/slices-of-own-node"


def check_driver_write(
    identity: Identity, attributes: Attributes, old: Object | None, new: Object | None, lookup: ObjectLookup
) -> str | None:
    """Why an annotated ServiceAccount may not write this slice; None if it may, or nothing limits it."""
    if (attributes.group, attributes.resource) != ("resource.k8s.io", "resourceslices"):
        return None
    account = split_service_account_user(identity.user)
    found = lookup("serviceaccounts", *account) if account is not None else None
    if found is None:
        return None
    annotations = found.metadata.annotations
    slices = [obj.spec for obj in (old, new) if isinstance(obj, ResourceSlice)]
    driver = annotations.get(OF_DRIVER)
    if driver is not None and any(spec.driver != driver for spec in slices):
        return f'{identity.user} can only write ResourceSlices of driver "{driver}"'
    if annotations.get(OF_OWN_NODE) == "true":
        node = next(iter(identity.extra.get(NODE_NAME, ())), "")
        if not node:
            return f"{identity.user} needs a token bound to a pod on a node to write ResourceSlices"
        if any(spec.node_name != node for spec in slices):
            return f'{identity.user} on node "{node}" can only write ResourceSlices with that nodeName'
    return None
