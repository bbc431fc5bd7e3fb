"""Small typed objects that tests of the server write."""

from __future__ import annotations

from typing import Any

import builders
from builders import DRIVER, manifest, typed
from dray.api.generated.core import Node, Pod, ServiceAccount
from dray.api.generated.rbac import ClusterRole, ClusterRoleBinding, Role, RoleBinding
from dray.api.resource import ResourceClaim, ResourceSlice
from dray.server.security.identity import (
    NODE_NAME,
    POD_NAME,
    Identity,
    authenticated,
    service_account_groups,
    service_account_user,
)

RBAC = "rbac.authorization.k8s.io"
DRIVER_USER = service_account_user("default", "driver")


def pod(name: str, node: str = "", namespace: str = "default", **more: Any) -> Pod:
    """A pod, on a node if one is given; `more` goes into its spec."""
    return typed(builders.pod(name, node=node, namespace=namespace, **more), Pod)


def node(name: str, **labels: str) -> Node:
    """A node."""
    return typed(builders.node(name, labels=labels), Node)


def service_account(name: str, namespace: str = "default", **annotations: str) -> ServiceAccount:
    """A ServiceAccount."""
    return typed(manifest("v1", "ServiceAccount", name, namespace, meta={"annotations": annotations}), ServiceAccount)


def driver(node: str = "") -> Identity:
    """The driver of namespace default, with a token bound to its pod on a node."""
    extra: dict[str, tuple[str, ...]] = {NODE_NAME: (node,), POD_NAME: ("driver",)} if node else {}
    return authenticated(DRIVER_USER, service_account_groups("default"), extra=extra)


def node_slice(name: str, node: str = "", driver: str = DRIVER) -> ResourceSlice:
    """A slice with one device, on a node or on all."""
    place: dict[str, Any] = {"nodeName": node} if node else {"allNodes": True}
    return typed(builders.resource_slice(name, "gpu-0", driver=driver, **place), ResourceSlice)


def claim(name: str, namespace: str = "default") -> ResourceClaim:
    """A claim for one device."""
    wanted = builders.request("gpu", deviceClassName="gpu.example.com")
    return typed(builders.claim(name, wanted, namespace=namespace), ResourceClaim)


def rule(verbs: str, resources: str, group: str = "") -> dict[str, Any]:
    """Verbs on resources of one group, each list as a text with spaces."""
    return {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}


def role(name: str, *rules: dict[str, Any], namespace: str = "", **metadata: Any) -> Role | ClusterRole:
    """A Role in a namespace, or a ClusterRole."""
    kind = "Role" if namespace else "ClusterRole"
    meta = {"name": name, "namespace": namespace, **metadata}
    made = typed({"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": meta, "rules": list(rules)})
    assert isinstance(made, Role | ClusterRole)
    return made


def binding(
    name: str, role: str, user: str, namespace: str = "", role_kind: str = "ClusterRole"
) -> RoleBinding | ClusterRoleBinding:
    """Gives a role to a user, in a namespace or everywhere."""
    document = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": {"name": name, "namespace": namespace},
        "roleRef": {"apiGroup": RBAC, "kind": role_kind, "name": role},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}],
    }
    made = typed(document)
    assert isinstance(made, RoleBinding | ClusterRoleBinding)
    return made
