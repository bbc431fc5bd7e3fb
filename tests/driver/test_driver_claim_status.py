"""What a driver says of prepared devices is in the status of their claims: health, data, addresses."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from msgspec.structs import replace

from dray import driver
from dray.api.backoff import Backoff
from dray.api.meta import Condition, Object
from dray.api.resource import (
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimStatus,
)
from dray.api.status import ApiError
from dray.api.times import Time
from dray.client import Client
from dray.driver import health
from dray.driver.checkpoint import Prepared
from dray.driver.claim_status import merge, words
from dray.server.security.identity import NODE_NAME, POD_NAME, authenticated, service_account_groups
from driver_world import CLAIM, NODE, DriverWorld, Fans, driver_world, empty_world
from local_server import typed
from patience import eventually_async

USER = "system:serviceaccount:default:driver"


class WatchedFans(Fans):
    """Fans that say how they are doing."""

    def __init__(self, *names: str) -> None:
        super().__init__(*names)
        self.reports: dict[str, tuple[bool | None, str]] = {"fan-0": (True, ""), "fan-1": (True, "")}
        self.edits = driver.Edits()

    def prepare(self, claim: driver.Claim, device: driver.ClaimDevice) -> driver.Edits:
        super().prepare(claim, device)
        return self.edits

    def health(self) -> list[driver.Health]:
        return [driver.Health(name, healthy, message) for name, (healthy, message) in self.reports.items()]

    def report(self, device: str, healthy: bool | None, message: str = "") -> None:
        self.reports[device] = healthy, message
        self.changed()


async def get(world: DriverWorld, claim: ResourceClaim) -> ResourceClaim:
    return cast(ResourceClaim, await world.client.get(CLAIM, "default", claim.metadata.name))


async def said(world: DriverWorld, claim: ResourceClaim, *words: str) -> tuple[AllocatedDeviceStatus, ...]:
    """The entries of a claim, once their conditions are these (`fan-0 Healthy=False`), in order."""
    found: tuple[AllocatedDeviceStatus, ...] = ()

    async def look() -> bool:
        nonlocal found
        found = (await get(world, claim)).status.devices
        return [f"{one.device} {it.type}={it.status}" for one in found for it in one.conditions] == list(words)

    try:
        await eventually_async(look)
    except AssertionError:
        raise AssertionError(f"the entries are {found}") from None
    return found


class CountingClient:
    """Another client, with a count of status updates, and failures on request."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.updates = 0
        self.before_update: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def update(self, obj: Object, subresource: str = "") -> Object:
        if subresource == "status":
            if self.before_update:
                await self.before_update.pop(0)()
            self.updates += 1
        return await self._client.update(obj, subresource)


@asynccontextmanager
async def counted(fans: Fans) -> AsyncIterator[tuple[DriverWorld, CountingClient]]:
    async with empty_world() as world:
        client = CountingClient(world.client)
        async with world.running(fans, client=client):
            yield world, client


@pytest.mark.req("SVS-48")
async def test_health_is_in_the_claim_as_long_as_the_device_is() -> None:
    fans = WatchedFans()
    async with counted(fans) as (world, client):
        claim = await world.allocate("c", "fan-0", {"driver": "gpu.example.com", "device": "gpu-0"})
        untouched = await world.allocate("other", "fan-1")
        await world.prepare(claim)
        (entry,) = await said(world, claim, "fan-0 Ready=True", "fan-0 Healthy=True")
        assert (entry.driver, entry.pool, entry.share_id) == (fans.name, NODE, None)
        fans.report("fan-0", False, "the bearing is worn out")
        (entry,) = await said(world, claim, "fan-0 Ready=True", "fan-0 Healthy=False")
        assert (entry.conditions[1].reason, entry.conditions[1].message) == ("Unhealthy", "the bearing is worn out")
        fans.report("fan-0", None)
        await said(world, claim, "fan-0 Ready=True", "fan-0 Healthy=Unknown")
        assert client.updates == 3
        assert (await get(world, untouched)).status.devices == ()  # nobody has prepared it

        # The API server takes entries away together with the devices; unprepare has no part in it.
        await world.unprepare(claim)
        stored = await get(world, claim)
        assert len(stored.status.devices) == 1
        freed = await world.client.update(replace(stored, status=replace(stored.status, allocation=None)), "status")
        assert freed.status.devices == ()
        fans.report("fan-0", True)
        await world.prepare(untouched)
        await said(world, untouched, "fan-1 Ready=True", "fan-1 Healthy=True")
        assert (await get(world, claim)).status.devices == ()


async def test_only_what_is_new_is_written_also_after_a_restart() -> None:
    fans = WatchedFans()
    async with empty_world() as world:
        client = CountingClient(world.client)
        async with world.running(fans, client=client):
            claim = await world.allocate("c", "fan-0")
            await world.prepare(claim)
            before = await said(world, claim, "fan-0 Ready=True", "fan-0 Healthy=True")
            await world.prepare(claim)
            fans.report("fan-1", False)  # nobody uses that one
            claim2 = await world.allocate("d", "fan-1")
            await world.prepare(claim2)
            await said(world, claim2, "fan-1 Ready=True", "fan-1 Healthy=False")
            assert client.updates == 2
        fans.report("fan-0", False, "worn out")
        async with world.running(fans, client=client):
            after = await said(world, claim, "fan-0 Ready=True", "fan-0 Healthy=False")
            assert client.updates == 3
            assert after[0].conditions[0] == before[0].conditions[0]


async def test_a_claim_that_is_allocated_anew_is_spoken_of_anew() -> None:
    fans = WatchedFans()
    async with driver_world(fans) as world:
        claim = await world.allocate("c", "fan-0")
        await world.prepare(claim)
        await said(world, claim, "fan-0 Ready=True", "fan-0 Healthy=True")
        for device in ("fan-0", "fan-1"):
            stored = await get(world, claim)
            allocation = stored.status.allocation
            assert allocation is not None
            await world.unprepare(claim)
            status = replace(stored.status, allocation=None)
            freed = await world.client.update(replace(stored, status=status), "status")
            results = (replace(allocation.devices.results[0], device=device),)
            again = replace(allocation, devices=replace(allocation.devices, results=results))
            status = replace(freed.status, allocation=again)
            await world.client.update(replace(freed, status=status), "status")
            await world.prepare(claim)
            await said(world, claim, f"{device} Ready=True", f"{device} Healthy=True")


async def test_what_others_wrote_stays_and_conflicts_are_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dray.driver.status_writer.RETRY", Backoff(3600.0, 3600.0))  # at once, that is

    fans = WatchedFans()
    fans.edits = driver.Edits(
        data={"serial": 7},
        network_data=driver.NetworkDeviceData(
            interface_name="eth1", ips=("10.0.0.7/24",), hardware_address="02:00:00:00:00:07"
        ),
    )
    async with counted(fans) as (world, client):
        claim = await world.allocate("c", "fan-0", {"driver": "gpu.example.com", "device": "gpu-0"})
        attached = Condition(
            type="example.com/attached",
            status="True",
            reason="Attached",
            last_transition_time=claim.metadata.creation_timestamp,
        )
        foreign = AllocatedDeviceStatus(driver="gpu.example.com", pool=NODE, device="gpu-0", conditions=(attached,))
        binding = AllocatedDeviceStatus(driver=fans.name, pool=NODE, device="fan-0", conditions=(attached,))

        async def write(*entries: AllocatedDeviceStatus) -> None:
            stored = await get(world, claim)
            await world.client.update(replace(stored, status=replace(stored.status, devices=entries)), "status")

        client.before_update = [lambda: write(foreign), lambda: write(foreign, binding)]
        await world.prepare(claim)
        gpu = "gpu-0 example.com/attached=True"
        entries = await said(
            world, claim, gpu, "fan-0 example.com/attached=True", "fan-0 Ready=True", "fan-0 Healthy=True"
        )
        assert entries[0] == foreign
        assert entries[1].data == {"serial": 7}
        assert entries[1].network_data == fans.edits.network_data
        assert client.updates == 3  # two of them in vain


async def test_data_without_health_is_written_and_a_driver_with_neither_writes_nothing() -> None:
    async with counted(Fans()) as (world, client):
        claim = await world.allocate("c", "fan-0")
        await world.prepare(claim)
        assert (await get(world, claim)).status.devices == ()
        assert client.updates == 0
        await world.unprepare(claim)

    class Telling(Fans):
        def prepare(self, claim: driver.Claim, device: driver.ClaimDevice) -> driver.Edits:
            del claim
            return driver.Edits(data={"name": device.name})

    async with driver_world(Telling()) as world:
        claim = await world.allocate("c", "fan-0")
        await world.prepare(claim)
        (entry,) = await said(world, claim, "fan-0 Ready=True")
        assert entry.data == {"name": "fan-0"}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({"x": object()}, 'device "fan-0": data is no JSON'),
        ({"x": "y" * 10240}, "and a claim takes 10240"),
        ([1], "it must be a mapping"),
    ],
)
async def test_data_that_a_claim_cannot_have_is_refused(data: Any, why: str) -> None:
    fans = WatchedFans()
    fans.edits = driver.Edits(data=data)
    async with driver_world(fans) as world:
        claim = await world.allocate("c", "fan-0")
        assert why in (await world.prepare(claim))[claim.metadata.uid].error


@pytest.mark.req("4381-180")
async def test_without_the_right_the_driver_says_so_once_and_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        fans = WatchedFans()
        async with empty_world(with_roles=True) as world:
            await world.client.create(typed(_binding("system:dra-driver")))
            account = authenticated(
                USER, service_account_groups("default"), extra={NODE_NAME: (NODE,), POD_NAME: ("p",)}
            )
            async with world.running(fans, client=world.server.client(account)):
                for name in ("fan-0", "fan-1"):
                    claim = await world.allocate(name, name)
                    assert (await world.prepare(claim))[claim.metadata.uid].error == ""
                await eventually_async(lambda: "cannot update" in caplog.text)
                fans.report("fan-1", False)
                await world.client.create(typed(_binding("system:dra-driver-status")))
                fans.report("fan-1", None)
                await said(world, claim, "fan-1 Ready=True", "fan-1 Healthy=Unknown")
    refusals = [record.getMessage() for record in caplog.records if "status of devices" in record.getMessage()]
    assert len(refusals) == 1
    assert "resourceclaims/status" in refusals[0]
    assert "default/fan-0" in refusals[0]


def test_a_condition_keeps_its_time_until_its_status_is_another() -> None:
    first, later = Time.parse("2026-06-01T12:00:00Z"), Time.parse("2026-06-01T13:00:00Z")
    one, other = "0b5fb9cd-6a6d-4bf6-8b2c-6c2f2f3f5a10", "7c2c1b44-8c7f-4a9c-9a0e-0d5f5b1f4a11"
    devices = [Prepared(request="r", pool=NODE, device="fan-0", share_id=share) for share in (one, other)]
    result = DeviceRequestAllocationResult(request="r", driver="fans", pool=NODE, device="fan-0", share_id=one)
    allocation = AllocationResult(devices=DeviceAllocationResult(results=(result,)))

    def say(status: ResourceClaimStatus, healthy: bool, message: str, now: Time) -> ResourceClaimStatus:
        spoken = words(devices, lambda _pool, name: driver.Health(name, healthy, message))
        return replace(status, devices=merge(status, "fans", spoken, now))

    well = say(ResourceClaimStatus(allocation=allocation), True, "", first)
    (entry,) = well.devices  # the other share is not this claim's
    assert (entry.share_id, [it.last_transition_time for it in entry.conditions]) == (one, [first, first])
    assert say(well, True, "", later) == well
    hot = say(well, True, "hot", later)
    assert [it.last_transition_time for it in hot.devices[0].conditions] == [first, first]
    broken = say(hot, False, "hot", later)
    assert [it.last_transition_time for it in broken.devices[0].conditions] == [first, later]
    assert say(ResourceClaimStatus(), True, "", first).devices == ()


async def test_the_server_is_away_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dray.driver.status_writer.RETRY", Backoff(0.01, 60.0))

    fans = WatchedFans()

    async def away() -> None:
        raise ApiError(503, "ServiceUnavailable", "come back later")

    async def unreachable() -> None:
        raise ConnectionRefusedError("nobody there")

    async with counted(fans) as (world, client):
        client.before_update = [away, unreachable]
        claim = await world.allocate("c", "fan-0")
        await world.prepare(claim)
        await said(world, claim, "fan-0 Ready=True", "fan-0 Healthy=True")


async def test_a_driver_that_hangs_does_not_know_how_its_devices_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dray.driver.status_writer.LOOK_SECONDS", 0.01)
    monkeypatch.setattr(health, "REPEAT_SECONDS", 0.2)

    class Hanging(WatchedFans):
        interval = 0.05
        hangs = False

        async def health(self) -> list[driver.Health]:  # type: ignore[override]
            if self.hangs:
                await asyncio.Event().wait()
            return super().health()

    fans = Hanging()
    async with driver_world(fans) as world:
        claim = await world.allocate("c", "fan-0")
        await world.prepare(claim)
        await said(world, claim, "fan-0 Ready=True", "fan-0 Healthy=True")
        fans.hangs = True
        await said(world, claim, "fan-0 Ready=True", "fan-0 Healthy=Unknown")


def _binding(role: str) -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": role},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": "driver", "namespace": "default"}],
    }
