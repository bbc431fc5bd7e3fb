"""Claims in less usual states: shares, alternatives, other devices than before, several drivers, existing CDI ids."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from dray import driver
from dray.api.resource import ResourceClaim
from driver_world import NODE, DriverWorld, Fans, driver_world


class SharedFans(Fans):
    """Fans that several claims may use at once."""

    def __init__(self) -> None:
        super().__init__()
        self.devices = [driver.Device("fan-0", shareable=True, attributes={"version": driver.Version("1.0.0")})]


SHARE = "0b5fb9cd-6a6d-4bf6-8b2c-6c2f2f3f5a10"
OTHER = "7c2c1b44-8c7f-4a9c-9a0e-0d5f5b1f4a11"


@pytest.mark.req("SVS-55")
async def test_shares_are_told_in_v1_only_and_do_not_exclude_each_other() -> None:
    async with driver_world(SharedFans()) as world:
        await world.published(1)
        one = await world.allocate("one", {"device": "fan-0", "shareID": SHARE})
        two = await world.allocate("two", {"device": "fan-0", "shareID": OTHER})
        newer, older = await world.prepare(one, two), await world.prepare(one, two, version="v1beta1.DRAPlugin")
        assert newer[one.metadata.uid].devices[0].share_id == SHARE
        assert newer[two.metadata.uid].devices[0].share_id == OTHER
        assert not older[one.metadata.uid].devices[0].HasField("share_id")
        assert newer[one.metadata.uid].devices[0].cdi_device_ids == older[one.metadata.uid].devices[0].cdi_device_ids


async def test_an_alternative_is_reported_by_its_request() -> None:
    seen: list[tuple[str, str]] = []

    class Noting(Fans):
        def prepare(self, claim: driver.Claim, device: driver.ClaimDevice) -> None:
            del claim
            seen.append((device.request, device.subrequest))

    async with driver_world(Noting()) as world:
        claim = await _alternative(world)
        (device,) = (await world.prepare(claim))[claim.metadata.uid].devices
        assert list(device.request_names) == ["alt"]
    assert seen == [("alt", "small")]


async def _alternative(world: DriverWorld) -> Any:
    """A claim that got its second choice."""
    result = {"request": "alt/small", "driver": Fans.name, "pool": NODE, "device": "fan-0"}
    return await world.allocate("c", result, alternatives={"alt": ["large", "small"]})


@pytest.mark.req("4381-142")
async def test_a_claim_that_was_allocated_anew_is_prepared_anew() -> None:
    fans = Fans()
    async with driver_world(fans) as world:
        claim = await world.allocate("c", "fan-0")
        before = (await world.prepare(claim))[claim.metadata.uid].devices[0].cdi_device_ids
        moved = await _move(world, claim, "fan-1")
        answer = (await world.prepare(moved))[claim.metadata.uid]
        assert answer.devices[0].device_name == "fan-1"
        assert answer.devices[0].cdi_device_ids != before
        assert fans.calls == ["prepare default/c fan-0", "unprepare default/c", "prepare default/c fan-1"]
        assert world.cache.edits(answer.devices[0].cdi_device_ids).env == ("FAN=fan-1",)


async def _move(world: DriverWorld, claim: ResourceClaim, device: str) -> ResourceClaim:
    """Deallocates a claim and gives it another device, as happens when its node was lost for a while."""
    allocation = claim.status.allocation
    assert allocation is not None
    freed = await world.client.update(replace(claim, status=replace(claim.status, allocation=None)), "status")
    results = tuple(replace(result, device=device) for result in allocation.devices.results)
    moved = replace(allocation, devices=replace(allocation.devices, results=results))
    return await world.client.update(replace(freed, status=replace(freed.status, allocation=moved)), "status")


@pytest.mark.req("4381-176")
async def test_devices_of_other_drivers_are_theirs() -> None:
    fans = Fans()
    async with driver_world(fans) as world:
        claim = await world.allocate("c", "fan-0", {"driver": "gpu.example.com", "device": "gpu-0"})
        devices = (await world.prepare(claim))[claim.metadata.uid].devices
        assert [device.device_name for device in devices] == ["fan-0"]
        foreign = await world.allocate("f", {"driver": "gpu.example.com", "device": "gpu-1"})
        answer = (await world.prepare(foreign))[foreign.metadata.uid]
        assert (answer.error, len(answer.devices)) == ("", 0)


async def test_existing_cdi_devices_are_passed_on() -> None:
    class Vendor(Fans):
        def prepare(self, claim: driver.Claim, device: driver.ClaimDevice) -> driver.Edits:
            del claim
            return driver.Edits(cdi_ids=[f"vendor.example.com/fan={device.name}"])

    async with driver_world(Vendor()) as world:
        claim = await world.allocate("c", "fan-0")
        (device,) = (await world.prepare(claim))[claim.metadata.uid].devices
        assert list(device.cdi_device_ids) == ["vendor.example.com/fan=fan-0"]
        assert world.cdi_files() == []


async def test_a_driver_may_be_all_async() -> None:
    class Async(Fans):
        async def discover(self) -> Any:
            for device in self.devices:
                yield device

        async def prepare(self, claim: driver.Claim, device: driver.ClaimDevice) -> driver.Edits:  # type: ignore[override]
            await asyncio.sleep(0)
            return driver.Edits(env={"CLAIM": claim.name, "FAN": device.name})

        async def unprepare(self, claim: driver.Claim) -> None:  # type: ignore[override]
            self.calls.append(f"unprepare {claim}")

    fans = Async()
    async with driver_world(fans) as world:
        await world.published(1)
        claim = await world.allocate("c", "fan-0")
        (device,) = (await world.prepare(claim))[claim.metadata.uid].devices
        assert world.cache.edits(device.cdi_device_ids).env == ("CLAIM=c", "FAN=fan-0")
        await world.unprepare(claim)
        assert fans.calls == ["unprepare default/c"]


@pytest.mark.parametrize(("name", "why"), [("", "must be a DNS subdomain"), ("Bad_Name", "must be"), ("x" * 64, "63")])
async def test_a_driver_needs_a_name(name: str, why: str) -> None:
    class Nameless(Fans):
        pass

    Nameless.name = name

    with pytest.raises(driver.DriverError, match=rf"Nameless.name is .*{why}"):
        async with driver_world(Nameless()):
            pass
