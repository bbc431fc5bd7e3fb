"""What a node, and a driver on a node, may do to what is theirs and to what is another node's: every verb, every kind.

`docs/rights.md` has what the roles give. Here is what is left of it: the table is the whole of what may be done, so
that whoever widens it changes it.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from dray.api.registry import by_kind
from dray.api.status import ApiError
from dray.server.local import LocalClient
from dray.server.security.identity import (
    NODE_NAME,
    NODES,
    authenticated,
    service_account_groups,
    service_account_user,
)
from local_server import LocalServer, local_server, typed
from server_objects import binding, claim, node, node_slice

KINDS = {
    "node": by_kind("v1", "Node"),
    "lease": by_kind("coordination.k8s.io/v1", "Lease"),
    "pod": by_kind("v1", "Pod"),
    "secret": by_kind("v1", "Secret"),
    "configmap": by_kind("v1", "ConfigMap"),
    "serviceaccount": by_kind("v1", "ServiceAccount"),
    "claim": by_kind("resource.k8s.io/v1", "ResourceClaim"),
    "slice": by_kind("resource.k8s.io/v1", "ResourceSlice"),
    "csinode": by_kind("storage.k8s.io/v1", "CSINode"),
    "rule": by_kind("resource.k8s.io/v1", "DeviceTaintRule"),
}
NODE = authenticated("system:node:n1", (NODES,))
ACCOUNT = service_account_user("default", "driver")
DRIVER = authenticated(ACCOUNT, service_account_groups("default"), extra={NODE_NAME: ("n1",)})

TABLE = """
node    node            own        get list patch status
node    node            another's
node    lease           own        get patch delete
node    lease           another's
node    pod             own        get list status evict delete
node    pod             another's
node    secret          own        get list
node    secret          another's
node    configmap       own        get list
node    configmap       another's
node    serviceaccount  own        get
node    serviceaccount  another's
node    claim           own        get
node    claim           another's
node    slice           own        get list patch create delete
node    slice           another's
node    csinode         own        get patch delete
node    csinode         another's
node    rule            own
node    rule            another's
driver  node            own        get
driver  node            another's  get
driver  lease           own
driver  lease           another's
driver  pod             own
driver  pod             another's
driver  secret          own
driver  secret          another's
driver  configmap       own
driver  configmap       another's
driver  serviceaccount  own
driver  serviceaccount  another's
driver  claim           own        get
driver  claim           another's
driver  slice           own        get patch create delete
driver  slice           another's
driver  csinode         own
driver  csinode         another's
driver  rule            own
driver  rule            another's
"""


def _name(what: str, of: str) -> str:
    return of if what in ("node", "lease", "csinode") else f"{what}-{of}"


def _namespace(what: str) -> str:
    if what == "lease":
        return "kube-node-lease"
    return "default" if KINDS[what].namespaced else ""


def _object(what: str, of: str, suffix: str = "") -> Any:
    """What belongs to a node, or is used by its pod."""
    name = _name(what, of) + suffix
    if what == "node":
        return node(name)
    if what == "slice":
        return node_slice(name, of)
    if what == "claim":
        return claim(name)
    kind = KINDS[what]
    document: dict[str, Any] = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name, "namespace": _namespace(what)},
    }
    if what == "pod":
        document["spec"] = _pod_spec(of)
    elif what == "csinode":
        document["spec"] = {"drivers": []}
    elif what == "rule":
        taint = {"key": "example.com/broken", "effect": "NoSchedule"}
        document["spec"] = {"deviceSelector": {"driver": "gpu.example.com"}, "taint": taint}
    return typed(document)


def _pod_spec(of: str) -> dict[str, Any]:
    return {
        "nodeName": of,
        "serviceAccountName": f"serviceaccount-{of}",
        "containers": [{"name": "main", "image": "x", "resources": {"claims": [{"name": "device"}]}}],
        "resourceClaims": [{"name": "device", "resourceClaimName": f"claim-{of}"}],
        "volumes": [
            {"name": "a", "secret": {"secretName": f"secret-{of}"}},
            {"name": "b", "configMap": {"name": f"configmap-{of}"}},
        ],
    }


async def _is_allowed(attempt: Awaitable[object]) -> bool:
    """Whether it is anything but forbidden: what fails for another reason was let in."""
    try:
        await attempt
    except ApiError as error:
        return error.code != 403
    return True


async def _may(client: LocalClient, what: str, of: str) -> list[str]:
    kind, namespace, name = KINDS[what], _namespace(what), _name(what, of)
    label: dict[str, Any] = {"metadata": {"labels": {"some": "label"}}}
    attempts: dict[str, Awaitable[object]] = {
        "get": client.get(kind, namespace, name),
        "list": client.list(kind, namespace, fields=f"metadata.name={name}"),
        "list-all": client.list(kind, namespace),
        "patch": client.patch(kind, namespace, name, label),
        "create": client.create(_object(what, of, "-new")),
    }
    if kind.has_status:
        attempts["status"] = client.patch(kind, namespace, name, {"status": {}}, subresource="status")
    if what == "pod":
        attempts["evict"] = client.post(kind, namespace, name, "eviction", {"metadata": {"name": name}})
        attempts["bind"] = client.post(kind, namespace, name, "binding", {"target": {"name": of}})
    if what == "serviceaccount":
        attempts["token"] = client.post(kind, namespace, name, "token", {"spec": {"audiences": ["a"]}})
    attempts["delete"] = client.delete(kind, namespace, name)
    return [verb for verb, attempt in attempts.items() if await _is_allowed(attempt)]


async def _fill(server: LocalServer) -> None:
    admin = server.client()
    await admin.create(binding("driver", "system:dra-driver", ACCOUNT))
    for of in ("n1", "n2"):
        for what in sorted(KINDS, key=lambda one: one == "pod"):  # its account has to be there before it
            await admin.create(_object(what, of))


async def test_the_table_of_what_may_be_done_to_whose_things() -> None:
    rows = []
    for who, identity in (("node", NODE), ("driver", DRIVER)):
        async with local_server() as server:
            await _fill(server)
            for what in KINDS:
                for of, whose in (("n1", "own"), ("n2", "another's")):
                    allowed = await _may(server.client(identity), what, of)
                    rows.append(f"{who:7} {what:15} {whose:10} {' '.join(allowed)}".rstrip())
    assert "\n".join(rows) == TABLE.strip()
