"""A published device is given to one claim only, whichever scheduler allocates, and however close together."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import pytest
from msgspec.structs import replace

from controller_world import Manifest, manifest, typed
from dray.api.registry import by_kind
from dray.api.resource import ResourceClaim
from dray.api.status import ApiError
from dray.client import Client
from dray.server.indexes import held_devices
from dray.server.security.identity import MASTERS, authenticated
from eviction_objects import DRIVER, V1, device_slice
from local_server import LocalServer, local_server

SCHEDULER = "system:kube-scheduler"
CLAIMS = by_kind(V1, "ResourceClaim")
SLICES = by_kind(V1, "ResourceSlice")
SHARE = "8d1a8a3c-3b53-4f6f-9c38-7e0d7f6f3f0{}"


def as_scheduler(server: LocalServer) -> Client:
    """A client with the name of the scheduler and all rights."""
    return server.client(authenticated(SCHEDULER, (MASTERS,)))


async def add_claim(client: Client, name: str) -> ResourceClaim:
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]
    return await client.create(typed(manifest(V1, "ResourceClaim", name, spec={"devices": {"requests": requests}})))


def result(device: str, pool: str = "pool", **more: Any) -> Manifest:
    return {"request": "gpu", "driver": DRIVER, "pool": pool, "device": device, **more}


async def allocate(client: Client, name: str, *results: Manifest, **status: Any) -> None:
    """As a scheduler does it, with the claim as it is stored."""
    claim = await client.get(CLAIMS, "default", name)
    assert isinstance(claim, ResourceClaim)
    wanted: ResourceClaim = typed(
        manifest(V1, "ResourceClaim", name, status={"allocation": {"devices": {"results": list(results)}}, **status})
    )
    await client.update(replace(claim, status=wanted.status), subresource="status")


async def release(client: Client, name: str) -> None:
    await client.patch(CLAIMS, "default", name, {"status": {"allocation": None}}, subresource="status")


@contextlib.asynccontextmanager
async def server_with_devices() -> AsyncIterator[LocalServer]:
    async with local_server(with_roles=False) as server:
        admin = as_scheduler(server)
        devices = [
            {"name": "gpu-0"},
            {"name": "gpu-1"},
            {"name": "link", "allowMultipleAllocations": True, "capacity": {"bandwidth": {"value": "10"}}},
        ]
        await admin.create(typed(device_slice("pool", devices=devices)))
        await admin.create(typed(parts_slice(sharedCounters=[{"name": "card", "counters": memory(4)}])))
        parts = [{"name": f"part-{units}", "consumesCounters": draw(units)} for units in (1, 2, 3)]
        await admin.create(typed(parts_slice("-devices", devices=parts)))
        for name in ("a", "b", "c"):
            await add_claim(admin, name)
        yield server


def memory(units: int) -> Manifest:
    return {"memory": {"value": str(units)}}


def draw(units: int) -> list[Manifest]:
    return [{"counterSet": "card", "counters": memory(units)}]


def parts_slice(suffix: str = "", **content: Any) -> Manifest:
    pool = {"name": "parts", "generation": 1, "resourceSliceCount": 2}
    spec = {"driver": DRIVER, "nodeName": "node-1", "pool": pool, **content}
    return manifest(V1, "ResourceSlice", f"parts{suffix}", spec=spec)


async def expect_refusal(call: Awaitable[None], why: str) -> None:
    with pytest.raises(ApiError, match=why) as failure:
        await call
    assert (failure.value.code, failure.value.reason) == (409, "Conflict")


async def test_a_device_that_a_claim_has_is_not_given_to_another() -> None:
    async with server_with_devices() as server:
        admin = as_scheduler(server)
        await allocate(admin, "a", result("gpu-0"))
        refused = f"device {DRIVER}/pool/gpu-0 is allocated to ResourceClaim default/a; allocate anew"
        await expect_refusal(allocate(admin, "b", result("gpu-1"), result("gpu-0")), refused)
        await allocate(admin, "b", result("gpu-1"))
        await release(admin, "a")
        await allocate(admin, "c", result("gpu-0"))


async def test_an_allocation_by_hand_is_taken_as_it_is() -> None:
    async with server_with_devices() as server:
        await allocate(as_scheduler(server), "a", result("gpu-0"))
        await allocate(server.client(), "b", result("gpu-0"))
        await expect_refusal(allocate(as_scheduler(server), "c", result("gpu-0")), "is allocated to")


@pytest.mark.parametrize(
    "user", ["system:serviceaccount:kube-system:resource-claim-controller", "system:serviceaccount:default:other"]
)
async def test_no_program_gives_a_device_away_twice(user: str) -> None:
    async with server_with_devices() as server:
        await allocate(as_scheduler(server), "a", result("gpu-0"))
        program = server.client(authenticated(user, (MASTERS,)))
        await expect_refusal(allocate(program, "b", result("gpu-0")), "is allocated to")


async def test_a_slice_of_another_node_does_not_lift_the_guard() -> None:
    """Devices that are not published are not guarded: nobody makes those of another node look so."""
    async with server_with_devices() as server:
        scheduler = as_scheduler(server)
        pool = {"name": "pool", "generation": 9, "resourceSliceCount": 1}
        foreign = device_slice("foreign", "other", nodeName="node-2", pool=pool)
        await scheduler.create(typed(foreign))
        here = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}
        for name in ("a", "b"):
            claim = await scheduler.get(CLAIMS, "default", name)
            selector = {"nodeSelectorTerms": [here]}
            allocation = {"devices": {"results": [result("gpu-0")]}, "nodeSelector": selector}
            wanted: Any = typed(manifest(V1, "ResourceClaim", name, status={"allocation": allocation}))
            write = scheduler.update(replace(claim, status=wanted.status), subresource="status")
            if name == "a":
                await write
            else:
                with pytest.raises(ApiError, match="is allocated to ResourceClaim default/a"):
                    await write


@pytest.mark.req("4381-128")
async def test_of_two_writes_at_the_same_time_one_is_refused() -> None:
    async with server_with_devices() as server:
        admin = as_scheduler(server)
        outcome = await asyncio.gather(
            *(allocate(admin, name, result("gpu-0")) for name in ("a", "b", "c")), return_exceptions=True
        )
        assert [type(one) for one in outcome].count(ApiError) == 2


async def test_a_server_that_starts_again_knows_who_has_what() -> None:
    async with server_with_devices() as server:
        await allocate(as_scheduler(server), "a", result("gpu-0"))
        restarted = LocalServer(server.clock, server.backend, 2)
        await expect_refusal(allocate(as_scheduler(restarted), "b", result("gpu-0")), "is allocated to")
        await restarted.store.close()


async def test_a_server_that_starts_again_reads_a_part_in_each_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_devices, "READ_AT_ONCE", 1)
    async with server_with_devices() as server:
        await allocate(as_scheduler(server), "a", result("gpu-0"))
        restarted = LocalServer(server.clock, server.backend, 2)
        reading = asyncio.create_task(restarted.engine.held_devices.read())
        for _ in range(3):  # as many as there are claims
            await asyncio.sleep(0)
            assert not reading.done()
        await reading
        monkeypatch.setattr(restarted.engine.held_devices, "_load", pytest.fail)
        await expect_refusal(allocate(as_scheduler(restarted), "b", result("gpu-0")), "is allocated to")
        await restarted.store.close()


async def test_a_device_stays_taken_when_it_is_not_published_any_more() -> None:
    async with server_with_devices() as server:
        admin = as_scheduler(server)
        await allocate(admin, "a", result("gpu-0"))
        await admin.delete(by_kind(V1, "ResourceSlice"), "", "pool-slice")
        await expect_refusal(allocate(admin, "b", result("gpu-0")), "is allocated to")


async def test_admin_access_is_not_counted() -> None:
    async with server_with_devices() as server:
        admin = as_scheduler(server)
        label = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
        await admin.patch(by_kind("v1", "Namespace"), "", "default", label)
        await allocate(admin, "a", result("gpu-0"))
        await allocate(admin, "b", result("gpu-0", adminAccess=True))
        await allocate(admin, "c", result("gpu-1"))


@pytest.mark.parametrize("users", [[], [{"resource": "pods", "name": "p", "uid": "1"}]])
async def test_people_give_away_what_is_not_published_as_they_like(users: list[Manifest]) -> None:
    """Tests of the API do, for instance. Once it is published, nobody gives it to one more."""
    async with server_with_devices() as server:
        person = server.client()
        for name in ("a", "b"):
            await allocate(person, name, result("gpu-0", "later"), reservedFor=users)
        later = device_slice("later", "gpu-0", pool={"name": "later", "generation": 1, "resourceSliceCount": 1})
        await person.create(typed(later))
        await expect_refusal(allocate(as_scheduler(server), "c", result("gpu-0", "later")), "is allocated to")


async def test_a_device_that_is_not_published_any_more_is_given_to_one() -> None:
    """Two schedulers may not have heard yet that it is gone, and it comes back."""
    async with server_with_devices() as server:
        admin = as_scheduler(server)
        await admin.delete(by_kind(V1, "ResourceSlice"), "", "pool-slice")
        await allocate(admin, "a", result("gpu-0"))
        await expect_refusal(allocate(admin, "b", result("gpu-0")), "is allocated to")


async def test_what_was_let_go_of_is_remembered_no_more() -> None:
    async with server_with_devices() as server:
        admin = as_scheduler(server)
        for _ in range(3):
            await allocate(admin, "a", result("gpu-0"), result("gpu-1"))
            await release(admin, "a")
        await allocate(admin, "b", result("link"))
        assert list(server.engine.held_devices._holders[DRIVER, "pool"]) == ["link"]


@pytest.mark.req("4381-48")
async def test_what_admins_look_at_can_be_given_away() -> None:
    async with server_with_devices() as server:
        admin = as_scheduler(server)
        label = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
        await admin.patch(by_kind("v1", "Namespace"), "", "default", label)
        await allocate(admin, "a", result("gpu-0", adminAccess=True))
        await allocate(admin, "b", result("gpu-0"))


def share(number: int, amount: int) -> Manifest:
    return result("link", shareID=SHARE.format(number), consumedCapacity={"bandwidth": str(amount)})


async def test_shares_of_a_device_are_given_away_as_long_as_there_is_capacity() -> None:
    async with server_with_devices() as server:
        admin = as_scheduler(server)
        await allocate(admin, "a", share(1, 6))
        await expect_refusal(allocate(admin, "b", share(2, 5)), "has not enough bandwidth left")
        await allocate(admin, "b", share(2, 4))
        await expect_refusal(allocate(admin, "c", result("link")), "is allocated to")


async def test_counters_that_devices_share_are_not_overdrawn() -> None:
    async with server_with_devices() as server:
        admin = as_scheduler(server)
        await allocate(admin, "a", result("part-2", "parts"))
        await expect_refusal(
            allocate(admin, "b", result("part-3", "parts")), "needs more of counter card/memory than is left"
        )
        await allocate(admin, "b", result("part-1", "parts"))
        await release(admin, "a")
        await allocate(admin, "c", result("part-3", "parts"))


@pytest.mark.parametrize("first", ["parts", "parts-devices"])
async def test_counters_are_not_overdrawn_while_a_pool_is_published_anew(first: str) -> None:
    """A driver does so slice by slice, and a scheduler that has not heard of it decides by the old ones."""
    async with server_with_devices() as server:
        admin = as_scheduler(server)
        await allocate(admin, "a", result("part-2", "parts"))
        await admin.patch(SLICES, "", first, {"spec": {"pool": {"generation": 2}}})
        await expect_refusal(
            allocate(admin, "b", result("part-3", "parts")), "needs more of counter card/memory than is left"
        )


async def test_a_share_of_a_device_that_is_held_draws_on_no_counter_again() -> None:
    """Its driver has fewer of them than when the first share was given away."""
    async with server_with_devices() as server:
        admin = as_scheduler(server)
        shared = {"name": "part", "consumesCounters": draw(4), "allowMultipleAllocations": True}
        await admin.patch(SLICES, "", "parts-devices", {"spec": {"devices": [shared]}})
        await allocate(admin, "a", result("part", "parts", shareID=SHARE.format(1)))
        await admin.patch(SLICES, "", "parts", {"spec": {"sharedCounters": [{"name": "card", "counters": memory(3)}]}})
        await allocate(admin, "b", result("part", "parts", shareID=SHARE.format(2)))


async def reserve(client: Client, name: str, device: str) -> None:
    """As a scheduler does it for a pod."""
    claim = await client.get(CLAIMS, "default", name)
    assert isinstance(claim, ResourceClaim)
    status = {
        "allocation": {"devices": {"results": [result(device)]}},
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
    }
    wanted: ResourceClaim = typed(manifest(V1, "ResourceClaim", name, status=status))
    await client.update(replace(claim, status=wanted.status), subresource="status")


async def test_a_scheduler_with_the_credentials_of_a_person_is_judged_by_what_it_writes() -> None:
    async with server_with_devices() as server:
        admin = server.client()
        await reserve(admin, "a", "gpu-0")
        await expect_refusal(reserve(admin, "b", "gpu-0"), "is allocated to")
        await reserve(admin, "b", "gpu-1")
