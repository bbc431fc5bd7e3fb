"""Small typed objects that tests of the server write."""

from __future__ import annotations

from typing import Any

from dray.api.generated.core import Node, Pod, ServiceAccount
from dray.api.generated.rbac import ClusterRole, ClusterRoleBinding, Role, RoleBinding
from dray.api.resource import ResourceClaim, ResourceSlice
from local_server import typed

RBAC = "rbac.authorization.k8s.io"
RESOURCE = "resource.k8s.io/v1"


def pod(name: str, node: str = "", namespace: str = "default", **more: Any) -> Pod:
    """A pod, on a node if one is given; `more` goes into its spec."""
    spec = {"containers": [{"name": "main", "image": "image"}], **({"nodeName": node} if node else {}), **more}
    document = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": spec}
    made = typed(document)
    assert isinstance(made, Pod)
    return made


def node(name: str, **labels: str) -> Node:
    """A node."""
    made = typed({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}})
    assert isinstance(made, Node)
    return made


def service_account(name: str, namespace: str = "default", **annotations: str) -> ServiceAccount:
    """A ServiceAccount."""
    metadata = {"name": name, "namespace": namespace, "annotations": annotations}
    made = typed({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    assert isinstance(made, ServiceAccount)
    return made


def node_slice(name: str, node: str = "", driver: str = "gpu.example.com") -> ResourceSlice:
    """A slice with one device, on a node or on all."""
    place: dict[str, Any] = {"nodeName": node} if node else {"allNodes": True}
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": driver, "pool": pool, "devices": [{"name": "gpu-0"}], **place}
    made = typed({"apiVersion": RESOURCE, "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec})
    assert isinstance(made, ResourceSlice)
    return made


def claim(name: str, namespace: str = "default") -> ResourceClaim:
    """A claim for one device."""
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]
    metadata = {"name": name, "namespace": namespace}
    spec = {"devices": {"requests": requests}}
    made = typed({"apiVersion": RESOURCE, "kind": "ResourceClaim", "metadata": metadata, "spec": spec})
    assert isinstance(made, ResourceClaim)
    return made


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
