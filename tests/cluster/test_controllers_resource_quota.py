"""The status of quotas follows the objects that exist."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

import builders
from controller_world import Manifest, World, controller_world, manifest, pod
from dray.api.status import ApiError
from dray.controllers import resource_quota

DEVICES = "gpu.deviceclass.resource.k8s.io/devices"
CLAIMS = "count/resourceclaims.resource.k8s.io"


@contextlib.asynccontextmanager
async def resource_quota_world() -> AsyncIterator[World]:
    async with controller_world("resourcequota-controller") as world:
        yield world


def quota(**hard: str) -> Manifest:
    return manifest("v1", "ResourceQuota", "q", spec={"hard": hard})


def claim(name: str, count: int = 1) -> Manifest:
    return builders.claim(name, builders.request(count=count))


async def used(world: World) -> dict[str, str]:
    return {name: str(amount) for name, amount in (await world.get("resourcequotas", "q")).status.used.items()}


@pytest.mark.req("4381-145", "4381-146")
async def test_a_new_quota_counts_what_is_there() -> None:
    async with resource_quota_world() as world:
        await world.create(claim("a", 5), claim("b", 3), quota(**{DEVICES: "10", CLAIMS: "10"}))
        await world.settle()
        assert await used(world) == {DEVICES: "8", CLAIMS: "2"}
        with pytest.raises(ApiError, match="exceeded quota: q, requested: gpu"):
            await world.create(claim("c", 3))


@pytest.mark.req("4381-149")
async def test_deleting_a_claim_gives_its_devices_back() -> None:
    async with resource_quota_world() as world:
        await world.create(quota(**{DEVICES: "4"}))
        await world.settle()
        await world.create(claim("a", 4))
        assert await used(world) == {DEVICES: "4"}
        with pytest.raises(ApiError, match="exceeded quota"):
            await world.create(claim("b"))
        await world.delete("resourceclaims", "a")
        await world.settle()
        assert await used(world) == {DEVICES: "0"}
        await world.create(claim("b"))
        assert await used(world) == {DEVICES: "1"}


async def test_a_finished_pod_gives_back_what_it_used() -> None:
    async with resource_quota_world() as world:
        await world.create(quota(pods="2", cpu="2", **{"limits.memory": "1Gi", "count/pods": "5"}))
        await world.settle()
        resources = {"requests": {"cpu": "500m"}, "limits": {"cpu": "1", "memory": "256Mi"}}
        await world.create(pod("p", containers=[{"name": "c", "image": "i", "resources": resources}]))
        assert await used(world) == {"pods": "1", "cpu": "500m", "limits.memory": "256Mi", "count/pods": "1"}
        await world.patch("pods", "p", {"status": {"phase": "Succeeded"}}, "status")
        await world.settle()
        assert await used(world) == {"pods": "0", "cpu": "0", "limits.memory": "0", "count/pods": "1"}


async def test_a_changed_quota_is_counted_anew() -> None:
    async with resource_quota_world() as world:
        await world.create(claim("a"), quota(**{DEVICES: "4"}))
        await world.settle()
        await world.patch("resourcequotas", "q", {"spec": {"hard": {DEVICES: None, CLAIMS: "3"}}})
        await world.settle()
        assert await used(world) == {CLAIMS: "1"}


async def test_scopes_decide_which_pods_count() -> None:
    async with resource_quota_world() as world:
        limited = quota(pods="5")
        limited["spec"]["scopes"] = ["Terminating"]
        await world.create(limited)
        await world.settle()
        await world.create(pod("endless"), pod("bounded", activeDeadlineSeconds=60))
        await world.settle()
        assert await used(world) == {"pods": "1"}


async def test_many_at_once_are_counted_exactly() -> None:
    async with resource_quota_world() as world:
        await world.create(quota(**{DEVICES: "100", CLAIMS: "100"}))
        await world.settle()
        for number in range(40):
            await world.create(claim(f"c{number}"))
        deletes = [world.delete("resourceclaims", f"c{number}") for number in range(30)]
        creates = [world.create(claim(f"d{number}")) for number in range(20)]
        await asyncio.gather(*deletes, *creates)
        await world.settle(2)
        assert await used(world) == {DEVICES: "30", CLAIMS: "30"}


@pytest.mark.req("4381-149")
async def test_what_is_made_while_a_new_quota_is_counted_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Admission adds to a quota that has been counted; nothing else tells that something came just before."""
    async with resource_quota_world() as world:
        await world.create(claim("a", 2))
        count = resource_quota.plan

        async def slowly(_effort: int, _plan: object, *about: Any) -> Any:
            found = count(*about)
            if not about[0].status.hard:
                await world.create(claim("b", 3))
            return found

        monkeypatch.setattr(resource_quota, "beside_loop", slowly)
        await world.create(quota(**{DEVICES: "6"}))
        await world.settle(2)
        assert await used(world) == {DEVICES: "5"}
        with pytest.raises(ApiError, match="exceeded quota"):
            await world.create(claim("c", 2))


async def test_pods_and_claims_use_up_one_amount_of_an_extended_resource() -> None:
    gpu = "requests.example.com/gpu"
    async with resource_quota_world() as world:
        spec = {"extendedResourceName": "example.com/gpu"}
        await world.create(manifest("resource.k8s.io/v1", "DeviceClass", "gpu", "", spec=spec), quota(**{gpu: "3"}))
        await world.settle()
        await world.create(claim("a", 2))
        amounts = {"example.com/gpu": "1"}
        asking = {"name": "c", "image": "i", "resources": {"requests": amounts, "limits": amounts}}
        await world.create(pod("p", containers=[asking]))
        assert await used(world) == {gpu: "3"}
        with pytest.raises(ApiError, match=r"exceeded quota: q, requested: requests\.example\.com/gpu=1"):
            await world.create(claim("b"))
        await world.delete("resourceclaims", "a")
        await world.settle()
        assert await used(world) == {gpu: "1"}
