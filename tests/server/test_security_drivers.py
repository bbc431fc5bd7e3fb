"""Drivers: the role for their ServiceAccounts, and the limits that an annotation puts on it."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from dray.api.registry import by_kind
from dray.server.local import LocalClient
from dray.server.security.authorization import Attributes
from dray.server.security.identity import (
    NODE_NAME,
    Identity,
    authenticated,
    service_account_groups,
    service_account_user,
)
from local_server import LocalServer, local_server, refused
from server_objects import binding, node_slice, service_account

SLICES = by_kind("resource.k8s.io/v1", "ResourceSlice")
RESOURCE = "resource.k8s.io"
USER = service_account_user("default", "driver")


def run(scenario: Callable[[LocalServer, LocalClient], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with local_server() as server:
            admin = server.client()
            await admin.create(binding("driver", "system:dra-driver", USER))
            await scenario(server, admin)

    asyncio.run(whole())


def driver(node: str = "") -> Identity:
    """The driver, with a token bound to its pod on a node."""
    extra: dict[str, tuple[str, ...]] = {NODE_NAME: (node,)} if node else {}
    return authenticated(USER, service_account_groups("default"), extra=extra)


@pytest.mark.req("4381-180")
def test_a_driver_has_slices_and_may_read_claims_and_nodes() -> None:
    async def scenario(server: LocalServer, _: LocalClient) -> None:
        def may(verb: str, group: str, resource: str, subresource: str = "") -> bool:
            return server.roles.allowed(driver(), Attributes(verb, group, resource, subresource, "", "x")).allowed

        verbs = ("get", "list", "watch", "create", "update", "patch", "delete")
        assert all(may(verb, RESOURCE, "resourceslices") for verb in verbs)
        assert [verb for verb in (*verbs, "deletecollection") if may(verb, RESOURCE, "resourceclaims")] == ["get"]
        assert [verb for verb in verbs if may(verb, "", "nodes")] == ["get"]
        assert not any(may(verb, RESOURCE, "resourceclaims", "status") for verb in verbs)
        assert not any(may(verb, "", resource) for verb in verbs for resource in ("pods", "secrets"))

    run(scenario)


@pytest.mark.req("4381-187")
def test_nothing_separates_drivers_unless_asked_for() -> None:
    async def scenario(server: LocalServer, admin: LocalClient) -> None:
        await admin.create(service_account("driver"))
        client = server.client(driver("n1"))
        await client.create(node_slice("a", "n2", "other.example.com"))

    run(scenario)


@pytest.mark.req("4381-179", "4381-187")
def test_an_annotated_driver_writes_its_own_slices_on_its_own_node() -> None:
    async def scenario(server: LocalServer, admin: LocalClient) -> None:
        limits = {"dray/slices-of-driver": "gpu.example.com", "dray/slices-of-own-node": "true"}
        await admin.create(service_account("driver", **limits))
        await admin.create(node_slice("foreign", "n2"))
        client = server.client(driver("n1"))
        made = await client.create(node_slice("a", "n1"))
        await client.update(made)
        await refused(client.create(node_slice("b", "n2")), "can only write ResourceSlices with that nodeName")
        await refused(client.create(node_slice("b", "n1", "other.example.com")), "ResourceSlices of driver")
        await refused(client.delete(SLICES, "", "foreign"), "with that nodeName")
        await client.delete(SLICES, "", "a")
        await refused(server.client(driver()).create(node_slice("a", "n1")), "token bound to a pod")

    run(scenario)
