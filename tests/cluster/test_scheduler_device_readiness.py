"""Devices that must be attached before a pod may use them."""

from typing import Any

import pytest
from msgspec.structs import replace

from dray.api.meta import Condition
from dray.api.resource import AllocatedDeviceStatus
from dray.api.times import Time
from scheduler_world import DRIVER, NODES, World, scheduler_world

FABRIC: dict[str, Any] = {
    "name": "fabric",
    "bindingConditions": ["example.com/attached"],
    "bindingFailureConditions": ["example.com/failed"],
}


async def report(here: World, condition: str, message: str = "") -> None:
    """The driver says something about the device that the claim got."""
    claim = await here.claim("c")
    assert claim.status.allocation is not None
    result = claim.status.allocation.devices.results[0]
    said = Condition(
        type=condition,
        status="True",
        reason="Fabric",
        message=message,
        last_transition_time=Time("2026-01-01T00:00:00Z"),
    )
    device = AllocatedDeviceStatus(driver=DRIVER, pool=result.pool, device=result.device, conditions=(said,))
    await here.admin.update(replace(claim, status=replace(claim.status, devices=(device,))), subresource="status")


async def waiting_pod(here: World) -> None:
    await here.add_node("a", FABRIC)
    await here.add_class()
    await here.add_claim("c")
    await here.add_pod("p", "c")
    await here.settle(3)


@pytest.mark.req("SVS-48", "4381-121")
async def test_a_pod_is_bound_when_its_device_is_ready() -> None:
    async with scheduler_world() as here:
        await waiting_pod(here)
        assert not (await here.pod("p")).spec.node_name
        claim = await here.claim("c")
        assert claim.status.allocation is not None
        assert [user.name for user in claim.status.reserved_for] == ["p"]
        assert await here.message("p") == (
            f'resourceclaim "c": device {DRIVER}/a/fabric is not ready: waiting for example.com/attached'
        )
        await report(here, "example.com/attached")
        await here.settle(1)
        assert (await here.pod("p")).spec.node_name == "a"


@pytest.mark.req("SVS-48")
async def test_a_device_that_cannot_be_made_ready_is_given_back() -> None:
    async with scheduler_world() as here:
        await waiting_pod(here)
        await here.add_node("b", "plain")
        await here.admin.patch(NODES, "", "a", {"spec": {"unschedulable": True}})
        await report(here, "example.com/failed", "no cable")
        await here.settle(15)
        claim = await here.claim("c")
        assert claim.status.allocation is not None
        assert [result.pool for result in claim.status.allocation.devices.results] == ["b"]
        assert (await here.pod("p")).spec.node_name == "b"
