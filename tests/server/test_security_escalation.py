"""On a running server nobody gives away rights that they do not have."""

import contextlib
from collections.abc import AsyncIterator

from dray.api.registry import by_kind
from dray.server.local import LocalClient
from dray.server.security.identity import authenticated
from local_server import local_server, refused, typed
from server_objects import RBAC, binding, role, rule

ROLES = by_kind(f"{RBAC}/v1", "Role")
CLUSTER_ROLES = by_kind(f"{RBAC}/v1", "ClusterRole")


@contextlib.asynccontextmanager
async def admin_and_jane() -> AsyncIterator[tuple[LocalClient, LocalClient]]:
    """With the admin of the cluster, and as Jane, who is `admin` of the namespace `default`."""
    async with local_server() as server:
        admin = server.client()
        await admin.create(binding("jane", "admin", "jane", "default"))
        yield admin, server.client(authenticated("jane"))


async def test_a_role_gives_no_more_than_its_author_has() -> None:
    async with admin_and_jane() as (admin, jane):
        await jane.create(role("readers", rule("get list", "pods"), namespace="default"))
        more = rule("get", "nodes")
        why = "attempting to grant RBAC permissions not currently held"
        await refused(jane.create(role("nodes", more, namespace="default")), why)
        await refused(jane.patch(ROLES, "default", "readers", {"rules": [more]}), why)
        await admin.patch(ROLES, "default", "readers", {"rules": [more]})
        await jane.patch(ROLES, "default", "readers", {"metadata": {"annotations": {"a": "b"}}})


async def test_a_binding_gives_no_more_than_its_author_has() -> None:
    async with admin_and_jane() as (admin, jane):
        await jane.create(binding("view", "view", "joe", "default"))
        await refused(jane.create(binding("all", "cluster-admin", "joe", "default")), "not currently held")
        await refused(jane.create(binding("none", "missing", "joe", "default")), "not found")
        await refused(jane.create(binding("view", "view", "joe")), "cannot create")
        bind = {
            "apiGroups": [RBAC],
            "resources": ["clusterroles"],
            "verbs": ["bind"],
            "resourceNames": ["cluster-admin"],
        }
        await admin.create(role("binder", bind, namespace="default"))
        await admin.create(binding("binder", "binder", "jane", "default", "Role"))
        await jane.create(binding("all", "cluster-admin", "joe", "default"))


async def test_aggregation_needs_everything() -> None:
    async with admin_and_jane() as (admin, jane):
        await admin.create(role("roles", rule("create update patch get", "clusterroles", RBAC)))
        await admin.create(binding("roles", "roles", "jane"))
        everything = {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "sum"},
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]},
        }
        await refused(jane.create(typed(everything)), "must have cluster-admin privileges")
        await admin.create(typed(everything))
        label = {"metadata": {"labels": {f"{RBAC}/aggregate-to-admin": "true"}}}
        await admin.create(role("secrets", rule("get", "secrets")))
        await refused(jane.patch(CLUSTER_ROLES, "", "secrets", label), "not currently held")
