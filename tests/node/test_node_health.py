"""What drivers say of their devices' health reaches pod status, and stops counting in time."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from msgspec.structs import replace

from dray.api.conditions import is_true
from dray.api.generated.core import Pod, PodStatus, ResourceHealth
from dray.api.kinds import PODS
from dray.client import PatchFormat
from dray.node.drivers import Drivers
from dray.node.health import (
    HEALTHY,
    MOST_DEVICES,
    UNHEALTHY,
    UNKNOWN,
    DeviceKey,
    Health,
    HealthReport,
    HealthTable,
)
from dray.node.health_watch import AT_ONCE, PAUSE_SECONDS, HealthWatch
from dray.node.pod_worker import PodWorker
from dray.plugins.generated import health_v1_pb2 as health
from dray.process.clock import RealClock
from dray.server.local import LocalClient
from node_world import DRIVER, NodeWorld, local_world
from patience import PATIENCE, eventually_async
from scripted_driver import ScriptedDriver

GPU = DeviceKey(DRIVER, "node-1", "gpu-0")


def report(
    state: health.HealthStatus, message: str = "", seconds: int = 0, device: str = "gpu-0"
) -> health.DeviceHealth:
    return health.DeviceHealth(
        device=health.DeviceIdentifier(pool_name="node-1", device_name=device),
        health=state,
        message=message,
        health_check_timeout_seconds=seconds,
    )


async def shows(world: NodeWorld, state: str, message: str | None = None) -> ResourceHealth:
    """Waits until the pod's status shows a health."""

    async def look() -> ResourceHealth | None:
        pod = await world.get("p")
        assert pod is not None
        shown = [
            (status.name, one)
            for container in pod.status.container_statuses
            for status in container.allocated_resources_status
            for one in status.resources
        ]
        if shown and shown[0][1].health == state and shown[0][1].message == message:
            assert shown[0][0] == "claim:c"
            return shown[0][1]
        return None

    found: ResourceHealth = await eventually_async(look, f"{state} {message} is not in the status")
    return found


async def test_a_status_that_is_written_late_is_put_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """A write is not answered, then the status before it is right again, and then the write comes all the same."""
    lost: list[Any] = []
    found_right: list[bool] = []
    is_losing, update, write = False, LocalClient.update, PodWorker._write

    async def lose(self: LocalClient, obj: Any, subresource: str = "") -> Any:
        if is_losing and obj.kind == "Pod":
            lost.append(obj)
            raise TimeoutError
        return await update(self, obj, subresource)

    async def note(self: PodWorker, pod: Pod, status: PodStatus) -> None:
        found_right.append(status == pod.status)
        await write(self, pod, status)

    monkeypatch.setattr(LocalClient, "update", lose)
    monkeypatch.setattr(PodWorker, "_write", note)
    async with local_world() as world:
        driver = ScriptedDriver(world.root)
        driver.info.supported_versions.append("v1.DRAResourceHealth")
        await world.start_driver(driver)
        await world.until(lambda: bool(driver.notified))
        await world.claim("c", "gpu-0")
        await world.pod("p", claims=["c"])
        await world.phase("p", "Running")
        driver.report(report(health.HEALTHY, "fine"))
        await shows(world, "Healthy", "fine")
        is_losing = True
        driver.report(report(health.UNHEALTHY, "broken"))
        await world.until(lambda: bool(lost))
        driver.report(report(health.HEALTHY, "fine"))
        await world.until(lambda: found_right[-1])
        is_losing = False
        await world.admin.update(lost[0], "status")
        await shows(world, "Healthy", "fine")


async def test_that_a_pod_is_scheduled_is_said_after_a_scheduler_denied_it_late() -> None:
    async with local_world() as world:
        await world.pod("p")
        await world.phase("p", "Running")
        late = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
        patch = {"status": {"conditions": [late]}}
        await world.admin.patch(PODS, "default", "p", patch, format=PatchFormat.STRATEGIC, subresource="status")
        async with asyncio.timeout(PATIENCE):
            while not is_true((await world.phase("p", "Running")).status.conditions, "PodScheduled"):
                await asyncio.sleep(0.02)


@pytest.mark.parametrize("version", ["v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"])
async def test_health_is_in_the_status_of_the_pods_that_use_the_device(version: str) -> None:
    async with local_world() as world:
        driver = ScriptedDriver(world.root)
        driver.info.supported_versions.append(version)
        await world.start_driver(driver)
        await world.until(lambda: bool(driver.notified))
        await world.claim("c", "gpu-0")
        await world.pod("p", claims=["c"])
        await world.phase("p", "Running")
        assert (await shows(world, "Unknown")).resource_id == "example.com/gpu=gpu-0"
        driver.report(report(health.UNHEALTHY, "x" * 2000), report(health.HEALTHY, device="gpu-1"))
        await shows(world, "Unhealthy", "x" * 1021 + "...")
        driver.report(report(health.HEALTHY, "fine\x1b[2J again"))
        await shows(world, "Healthy", "fine\\x1b[2J again")
        await driver.stop()
        await shows(world, "Unknown")


class LaterClock(RealClock):
    """The system's clock, which a test moves on."""

    later = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.later


async def test_a_report_that_is_not_renewed_stops_counting() -> None:
    async with local_world(started=False) as world:
        clock = world.clock = LaterClock()
        await world.start()
        driver = ScriptedDriver(world.root)
        driver.info.supported_versions.append("v1.DRAResourceHealth")
        await world.start_driver(driver)
        await world.claim("c", "gpu-0")
        await world.pod("p", claims=["c"])
        await world.phase("p", "Running")
        driver.report(report(health.HEALTHY, seconds=3600))
        await shows(world, "Healthy")
        clock.later = 3600
        await shows(world, "Unknown")


def test_the_table_tells_what_changed_and_when_it_ends() -> None:
    table = HealthTable()
    assert table.get(GPU) == Health(UNKNOWN)
    assert table.next_expiry is None
    good, bad = (HealthReport("node-1", "gpu-0", state, "", 30.0) for state in (HEALTHY, UNHEALTHY))
    assert table.update(DRIVER, [good], 0.0) == {GPU}
    assert table.update(DRIVER, [good], 10.0) == set()
    assert table.next_expiry == 40.0
    assert table.update(DRIVER, [bad], 20.0) == {GPU}
    assert table.expire(49.9) == set()
    assert table.expire(50.0) == {GPU}
    assert table.get(GPU).health == UNKNOWN
    assert table.update(DRIVER, [HealthReport("node-1", "gpu-0", UNKNOWN, "", 30.0)], 60.0) == set()
    table.update(DRIVER, [bad], 60.0)
    assert table.forget("other.example.com") == set()
    assert table.forget(DRIVER) == {GPU}


def test_a_driver_that_makes_up_devices_takes_no_room_from_others() -> None:
    table = HealthTable()
    made_up = [HealthReport("pool", f"device-{number}", HEALTHY, "", 30.0) for number in range(MOST_DEVICES + 100)]
    assert len(table.update("evil.example.com", made_up, 0.0)) == MOST_DEVICES
    assert table.update("evil.example.com", [HealthReport("pool", "x" * 1_000_000, HEALTHY, "", 30.0)], 0.0) == set()
    good = HealthReport("node-1", "gpu-0", HEALTHY, "", 30.0)
    assert table.update(DRIVER, [good], 0.0) == {GPU}
    table.forget("evil.example.com")
    assert len(table.update("evil.example.com", made_up, 0.0)) == MOST_DEVICES
    assert table.update("another.example.com", [replace(good, device="x" * 1_000_000)], 0.0) == set()


async def test_a_message_about_many_devices_leaves_turns_to_others() -> None:
    """Lease, exec and all other pods of the node are on the same loop."""
    table, turns = HealthTable(), 0
    watch = HealthWatch(Drivers(), table, RealClock(), lambda _: None)
    reports = [report(health.UNHEALTHY, "\x1b" * 300, device=f"gpu-{number}") for number in range(1_000)]
    taking = asyncio.create_task(watch._take(DRIVER, reports))
    while not taking.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns > len(reports) / AT_ONCE
    assert table.get(DeviceKey(DRIVER, "node-1", "gpu-999")).health == UNHEALTHY


async def test_a_driver_that_reports_without_end_is_read_no_faster_than_it_can_be_taken() -> None:
    async with local_world() as world:
        driver = ScriptedDriver(world.root)
        driver.info.supported_versions.append("v1.DRAResourceHealth")
        await world.start_driver(driver)
        await world.until(lambda: bool(driver.notified))
        began = time.monotonic()
        for number in range(6):
            driver.report(report(health.HEALTHY, str(number)))
        await world.until(lambda: world.agent.health.get(GPU).message == "5")
        assert time.monotonic() - began >= 5 * PAUSE_SECONDS
