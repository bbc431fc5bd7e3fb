"""Drivers: the role for their ServiceAccounts, the node that they act for, and the limits that an annotation puts."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from dray.api.registry import Kind, by_kind
from dray.api.status import ApiError
from dray.client.interface import PatchFormat
from dray.server.local import LocalClient
from dray.server.security.authorization import Attributes
from dray.server.security.identity import (
    NODE_NAME,
    authenticated,
    service_account_groups,
    service_account_user,
)
from local_server import LocalServer, local_server, refused
from server_objects import DRIVER_USER, binding, claim, driver, node, node_slice, pod, role, rule, service_account

SLICES = by_kind("resource.k8s.io/v1", "ResourceSlice")
CLAIMS = by_kind("resource.k8s.io/v1", "ResourceClaim")
RESOURCE = "resource.k8s.io"


@contextlib.asynccontextmanager
async def server_with_driver() -> AsyncIterator[tuple[LocalServer, LocalClient]]:
    async with local_server() as server:
        admin = server.client()
        await admin.create(binding("driver", "system:dra-driver", DRIVER_USER))
        yield server, admin


@pytest.mark.req("4381-180")
async def test_a_driver_has_slices_and_may_read_claims_and_nodes() -> None:
    async with server_with_driver() as (server, _):

        def may(verb: str, group: str, resource: str, subresource: str = "") -> bool:
            return server.roles.allowed(driver(), Attributes(verb, group, resource, subresource, "", "x")).allowed

        verbs = ("get", "list", "watch", "create", "update", "patch", "delete")
        assert all(may(verb, RESOURCE, "resourceslices") for verb in verbs)
        assert [verb for verb in (*verbs, "deletecollection") if may(verb, RESOURCE, "resourceclaims")] == ["get"]
        assert [verb for verb in verbs if may(verb, "", "nodes")] == ["get"]
        assert not any(may(verb, RESOURCE, "resourceclaims", "status") for verb in verbs)
        assert not any(may(verb, "", resource) for verb in verbs for resource in ("pods", "secrets"))


@pytest.mark.req("4381-187")
async def test_nothing_separates_drivers_unless_asked_for() -> None:
    async with server_with_driver() as (server, admin):
        await admin.create(service_account("driver"))
        client = server.client(driver("n1"))
        await client.create(node_slice("a", "n1", "other.example.com"))


@pytest.mark.req("4381-179")
async def test_a_driver_with_a_node_in_its_token_acts_for_that_node() -> None:
    async with server_with_driver() as (server, admin):
        for name in ("n1", "n2"):
            await admin.create(node(name))
        await admin.create(node_slice("foreign", "n2"))
        client = server.client(driver("n1"))
        await client.create(node_slice("n1", "n1"))
        await refused(client.create(node_slice("b", "n2")), 'ResourceSlice "b" of pool "b" has nodeName "n2"')
        await refused(client.create(node_slice("b")), 'ResourceSlice "b" of pool "b" has no nodeName')
        await refused(client.create(node_slice("n2", "n1")), "has the name of another node")
        await refused(
            client.delete(SLICES, "", "foreign"), 'ResourceSlice "foreign" of pool "foreign" has nodeName "n2"'
        )
        foreign = node_slice("c", "n1")
        foreign = replace(foreign, spec=replace(foreign.spec, pool=replace(foreign.spec.pool, name="foreign")))
        await refused(client.create(foreign), 'ResourceSlice "foreign" in it is of node "n2"')
        # Without a node in the token, it is whatever acts for all of them.
        await server.client(driver()).create(node_slice("network"))


async def test_a_driver_for_several_nodes_has_the_right_for_that() -> None:
    async with server_with_driver() as (server, admin):
        verbs = " ".join(f"arbitrary-node:{verb}" for verb in ("create", "delete", "get", "list", "patch"))
        right = rule(verbs, "resourceslices/driver", RESOURCE) | {"resourceNames": ["gpu.example.com"]}
        await admin.create(role("network", right))
        await admin.create(binding("network", "network", DRIVER_USER))
        client = server.client(driver("n1"))
        await client.create(node_slice("network"))
        await refused(client.create(node_slice("other", "", "other.example.com")), "has no nodeName")
        assert len((await client.list(SLICES, fields="spec.driver=gpu.example.com")).items) == 1
        await refused(client.list(SLICES, fields="spec.driver=other.example.com"), "of that node")
        await client.get(SLICES, "", "network")
        await client.patch(SLICES, "", "network", {"metadata": {"labels": {"a": "b"}}})
        await client.delete(SLICES, "", "network")


async def test_a_driver_on_a_node_reads_what_concerns_the_node() -> None:
    async with server_with_driver() as (server, admin):
        for name in ("n1", "n2"):
            await admin.create(node_slice(f"of-{name}", name))
            await admin.create(claim(f"for-{name}"))
            uses = [{"name": "r", "resourceClaimName": f"for-{name}"}]
            await admin.create(pod(f"on-{name}", name, resourceClaims=uses))
        client = server.client(driver("n1"))
        await client.get(CLAIMS, "default", "for-n1")
        await refused(client.get(CLAIMS, "default", "for-n2"), "can only read resourceclaims of that node")
        await client.get(SLICES, "", "of-n1")
        await refused(client.get(SLICES, "", "of-n2"), "can only read resourceslices of that node")
        await client.list(SLICES, fields="spec.nodeName=n1,spec.driver=gpu.example.com")
        await refused(client.list(SLICES), "can only read resourceslices of that node")
        await refused(client.list(SLICES, fields="spec.nodeName=n2"), "can only read resourceslices of that node")
        assert len((await server.client(driver()).list(SLICES)).items) == 2


async def test_a_driver_learns_nothing_by_trying_to_change_what_is_of_another_node() -> None:
    """Whether a patch fits would tell what is in an object."""
    async with server_with_driver() as (server, admin):
        await admin.create(binding("status", "system:dra-driver-status", DRIVER_USER))
        for name in ("n1", "n2"):
            await admin.create(node_slice(f"of-{name}", name))
            await admin.create(claim(f"for-{name}"))
            await admin.patch(CLAIMS, "default", f"for-{name}", _allocated_on(name), subresource="status")
        client = server.client(driver("n1"))
        test = [{"op": "test", "path": "/metadata/namespace", "value": "another"}]

        async def try_patch(kind: Kind, name: str) -> int:
            """What comes of a patch that does not fit."""
            part = "status" if kind is CLAIMS else ""
            namespace, stored = ("default", f"for-{name}") if kind is CLAIMS else ("", f"of-{name}")
            with pytest.raises(ApiError) as tried:
                await client.patch(kind, namespace, stored, test, subresource=part, format=PatchFormat.JSON)
            return tried.value.code

        for kind in (CLAIMS, SLICES):
            assert (await try_patch(kind, "n1"), await try_patch(kind, "n2")) == (422, 403)
        right = rule("arbitrary-node:patch", "resourceclaims/driver resourceslices/driver", RESOURCE)
        await admin.create(role("network", right | {"resourceNames": ["gpu.example.com"]}))
        await admin.create(binding("network", "network", DRIVER_USER))
        for kind in (CLAIMS, SLICES):
            assert await try_patch(kind, "n2") == 422


def _allocated_on(name: str) -> dict[str, Any]:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
    result = {"request": "gpu", "driver": "gpu.example.com", "pool": f"of-{name}", "device": "gpu-0"}
    allocation = {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [term]}}
    return {"status": {"allocation": allocation}}


async def test_an_account_on_a_node_that_is_no_driver_reads_as_its_roles_say() -> None:
    async with server_with_driver() as (server, admin):
        reader = service_account_user("default", "reader")
        await admin.create(role("reader", rule("list", "resourceslices resourceclaims", RESOURCE)))
        await admin.create(binding("reader", "reader", reader))
        on_node = authenticated(reader, service_account_groups("default"), extra={NODE_NAME: ("n1",)})
        client = server.client(on_node)
        await client.list(SLICES)
        await client.list(CLAIMS)


@pytest.mark.req("4381-179", "4381-187")
async def test_an_annotated_driver_writes_its_own_slices_on_its_own_node() -> None:
    async with server_with_driver() as (server, admin):
        limits = {"dray/slices-of-driver": "gpu.example.com", "dray/slices-of-own-node": "true"}
        await admin.create(service_account("driver", **limits))
        await admin.create(node_slice("foreign", "n2"))
        client = server.client(driver("n1"))
        made = await client.create(node_slice("a", "n1"))
        await client.update(made)
        await refused(client.create(node_slice("b", "n2")), "can only write ResourceSlices with that nodeName")
        await refused(client.create(node_slice("b", "n1", "other.example.com")), "ResourceSlices of driver")
        await refused(client.delete(SLICES, "", "foreign"), "can only write ResourceSlices with that nodeName")
        await client.delete(SLICES, "", "a")
        await refused(server.client(driver()).create(node_slice("a", "n1")), "token bound to a pod")
