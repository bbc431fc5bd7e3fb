"""Each part of a claim's status has its own right: `resourceclaims/status` alone is not enough for any of them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import pytest

from dray.api.generated.authentication import (
    BoundObjectReference,
    TokenRequest,
    TokenRequestSpec,
    TokenReview,
    TokenReviewSpec,
)
from dray.api.registry import by_kind
from dray.api.resource.claim import FINALIZER
from dray.api.status import ApiError
from dray.client.interface import PatchFormat
from dray.server.local import LocalClient
from dray.server.security.identity import NODE_NAME, authenticated
from local_server import LocalServer, local_server
from server_objects import DRIVER_USER, binding, claim, driver, node, node_slice, pod, role, rule, service_account

CLAIMS = by_kind("resource.k8s.io/v1", "ResourceClaim")
SERVICE_ACCOUNTS = by_kind("v1", "ServiceAccount")
RESOURCE = "resource.k8s.io"
DRIVER = "gpu.example.com"

ALLOCATION: dict[str, Any] = {
    "devices": {"results": [{"request": "gpu", "driver": DRIVER, "pool": "n1", "device": "gpu-0"}]},
    "nodeSelector": {
        "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]
    },
}
ENTRY = {"driver": DRIVER, "pool": "n1", "device": "gpu-0", "data": {"ok": True}}
ANYWHERE = {**ALLOCATION, "nodeSelector": None}


@contextlib.asynccontextmanager
async def server_with_claim() -> AsyncIterator[tuple[LocalServer, LocalClient]]:
    """With the admin, and a claim `c`; whoever is called `driver` may write `resourceclaims/status`."""
    async with local_server() as server:
        admin = server.client()
        await admin.create(node_slice("n1", "n1"))
        await admin.create(claim("c"))
        await admin.create(role("status", rule("update patch", "resourceclaims/status", RESOURCE)))
        await admin.create(binding("status", "status", DRIVER_USER))
        yield server, admin


async def write(client: LocalClient, **status: Any) -> None:
    await client.patch(CLAIMS, "default", "c", {"status": status}, subresource="status")


async def grant(admin: LocalClient, name: str, verbs: str, subresource: str, *names: str) -> None:
    rights = rule(verbs, f"resourceclaims/{subresource}", RESOURCE) | {"resourceNames": list(names)}
    await admin.create(role(name, rights))
    await admin.create(binding(name, name, DRIVER_USER))


async def denied(call: Awaitable[None], field: str, why: str) -> None:
    """As Kubernetes has it: the field is forbidden, the object invalid."""
    with pytest.raises(ApiError, match=why) as failure:
        await call
    assert failure.value.code == 422
    assert failure.value.status.details is not None
    assert [cause.field for cause in failure.value.status.details.causes] == [field]
    assert "is forbidden" in str(failure.value)


@pytest.mark.req("4381-188", "4381-123")
async def test_allocation_and_reservations_need_the_right_to_bind() -> None:
    async with server_with_claim() as (server, admin):
        client = server.client(driver())
        why = 'cannot patch resource "resourceclaims/binding" in API group "resource.k8s.io" at the cluster scope'
        await denied(write(client, allocation=ALLOCATION), "status.allocation", why)
        await write(admin, allocation=ALLOCATION)
        consumer = {"resource": "pods", "name": "p", "uid": "u"}
        await denied(write(client, reservedFor=[consumer]), "status.allocation", why)
        await denied(write(client, allocation=None), "status.allocation", why)
        await grant(admin, "bind", "patch", "binding")
        await write(client, reservedFor=[consumer])
        await write(client, reservedFor=None)
        await write(client, allocation=None)


async def test_the_right_to_bind_is_for_all_claims_everywhere() -> None:
    async with server_with_claim() as (server, admin):
        client = server.client(driver())
        await grant(admin, "one", "patch", "binding", "c")
        await admin.create(role("here", rule("patch", "resourceclaims/binding", RESOURCE), namespace="default"))
        await admin.create(binding("here", "here", DRIVER_USER, "default", "Role"))
        await denied(write(client, allocation=ALLOCATION), "status.allocation", "at the cluster scope")


async def test_components_bind() -> None:
    async with server_with_claim() as (server, _):
        await write(server.component("kube-scheduler"), allocation=ALLOCATION)
        await write(server.component("resource-claim-controller"), allocation=None)


ASSOCIATED = 'cannot associated-node:patch resource "resourceclaims/driver" in API group .* in the namespace "default"'
ARBITRARY = 'cannot arbitrary-node:patch resource "resourceclaims/driver" in API group .* in the namespace "default"'


async def test_whoever_writes_claims_does_not_free_devices_that_are_in_use() -> None:
    """Nor does the owner of the pod that has them: the next claim would get them, and the pod would still be there."""
    async with server_with_claim() as (server, admin):
        await admin.create(role("writer", rule("update patch delete", "resourceclaims", RESOURCE)))
        await admin.create(binding("writer", "writer", DRIVER_USER))
        client = server.client(driver())

        async def free(client: LocalClient) -> None:
            await client.patch(CLAIMS, "default", "c", {"metadata": {"finalizers": None}})

        held = {"metadata": {"finalizers": [FINALIZER, "example.com/other"]}}
        await admin.patch(CLAIMS, "default", "c", held)
        await free(client)  # nothing is given to it
        await admin.patch(CLAIMS, "default", "c", held)
        await write(admin, allocation=ALLOCATION)
        await free(client)  # nobody uses it
        await admin.patch(CLAIMS, "default", "c", held)
        await write(admin, reservedFor=[{"resource": "pods", "name": "p", "uid": "u"}])
        why = "pods p uses the claim: delete that first, or have patch on resourceclaims/binding"
        await denied(free(client), "metadata.finalizers", why)
        await client.patch(CLAIMS, "default", "c", {"metadata": {"finalizers": [FINALIZER]}})
        await client.delete(CLAIMS, "default", "c")
        await denied(free(client), "metadata.finalizers", why)
        await grant(admin, "bind", "patch", "binding")
        await free(client)
        with pytest.raises(ApiError, match="not found"):
            await admin.get(CLAIMS, "default", "c")


async def test_status_alone_writes_no_devices() -> None:
    async with server_with_claim() as (server, admin):
        await write(admin, allocation=ALLOCATION)
        await denied(write(server.client(driver("n1")), devices=[ENTRY]), "status.devices", ASSOCIATED)
        await denied(write(server.client(driver("n2")), devices=[ENTRY]), "status.devices", ARBITRARY)
        await denied(write(server.client(driver()), devices=[ENTRY]), "status.devices", ARBITRARY)


async def test_a_driver_writes_the_devices_of_its_own_node() -> None:
    async with server_with_claim() as (server, admin):
        await write(admin, allocation=ALLOCATION)
        await grant(admin, "own", "associated-node:patch", "driver", DRIVER)
        own, other = server.client(driver("n1")), server.client(driver("n2"))
        await denied(write(other, devices=[ENTRY]), "status.devices", ARBITRARY)
        await write(own, devices=[ENTRY])
        await denied(write(other, devices=[ENTRY | {"data": {"ok": False}}]), "status.devices", ARBITRARY)
        await denied(write(other, devices=None), "status.devices", ARBITRARY)
        await write(other, devices=[ENTRY])  # changes nothing
        await write(own, devices=[ENTRY | {"data": {"ok": False}}])
        await write(own, devices=None)


@pytest.mark.parametrize("kind", ["Node", "Pod"])
async def test_the_node_of_a_token_counts_if_a_pod_of_the_account_is_there(kind: str) -> None:
    """Whoever may ask for tokens of an account may have one bound to any node (issue 14)."""
    async with server_with_claim() as (server, admin):
        await write(admin, allocation=ALLOCATION)
        await grant(admin, "own", "associated-node:patch", "driver", DRIVER)
        await admin.create(service_account("driver"))
        await admin.create(node("n1"))
        await admin.create(pod("n1", "n1", serviceAccountName="driver"))
        asked = TokenRequest(
            spec=TokenRequestSpec(bound_object_ref=BoundObjectReference(api_version="v1", kind=kind, name="n1"))
        )
        issued = await admin.post(SERVICE_ACCOUNTS, "default", "driver", "token", asked)
        asks = TokenReviewSpec(token=issued["status"]["token"])
        review = await admin.create(TokenReview(kind="TokenReview", api_version="authentication.k8s.io/v1", spec=asks))
        user = review.status.user
        assert user.extra[NODE_NAME] == ("n1",)
        identity = authenticated(user.username, user.groups, user.uid, user.extra)
        writing = write(server.client(identity), devices=[ENTRY])
        if kind == "Pod":
            await writing
        else:
            await denied(writing, "status.devices", ARBITRARY)


async def test_a_claim_for_several_nodes_is_associated_with_none() -> None:
    async with server_with_claim() as (server, admin):
        await write(admin, allocation=ANYWHERE)
        await grant(admin, "own", "associated-node:patch", "driver")
        await denied(write(server.client(driver("n1")), devices=[ENTRY]), "status.devices", ARBITRARY)
        await grant(admin, "any", "arbitrary-node:patch", "driver")
        await write(server.client(driver("n1")), devices=[ENTRY])
        await write(server.client(driver()), devices=None)


async def test_the_right_is_by_driver_and_by_verb() -> None:
    async with server_with_claim() as (server, admin):
        await write(admin, allocation=ALLOCATION)
        await grant(admin, "other-driver", "arbitrary-node:patch", "driver", "other.example.com")
        await grant(admin, "other-verb", "arbitrary-node:update", "driver", DRIVER)
        await denied(write(server.client(driver()), devices=[ENTRY]), "status.devices", ARBITRARY)


async def test_an_apply_is_judged_as_a_patch() -> None:
    async with server_with_claim() as (server, admin):
        await write(admin, allocation=ALLOCATION)
        status = {"devices": [ENTRY]}
        applied = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "status": status}
        client = server.client(driver("n1"))

        async def apply() -> None:
            form = PatchFormat.APPLY
            await client.patch(
                CLAIMS, "default", "c", applied, format=form, subresource="status", field_manager="driver"
            )

        await denied(apply(), "status.devices", ASSOCIATED)
        await grant(admin, "own", "associated-node:patch", "driver", DRIVER)
        await apply()


async def test_whoever_deallocates_needs_no_right_for_the_devices_that_go_with_it() -> None:
    async with server_with_claim() as (server, admin):
        await write(admin, allocation=ALLOCATION, devices=[ENTRY])
        await write(server.component("resource-claim-controller"), allocation=None)
        stored: Any = await admin.get(CLAIMS, "default", "c")
        assert stored.status.devices == ()
