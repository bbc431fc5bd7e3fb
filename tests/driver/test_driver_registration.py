"""How a driver introduces itself to the node, and how it reports the health of its devices."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc.aio
import pytest

from dray import driver
from dray.driver import health
from dray.plugins import contracts, unix
from dray.plugins.generated import registration_pb2 as registration
from driver_world import NODE, Fans, driver_world, empty_world
from patience import PATIENCE, eventually_async


@pytest.mark.req("4381-150", "4381-151", "4381-152", "SVS-54")
async def test_registration_says_what_the_node_needs() -> None:
    async with empty_world() as world, world.running(Fans()) as runner:
        assert runner.registration_socket.name == "fans.example.com-reg.sock"
        await eventually_async(runner.registration_socket.exists)
        channel = unix.channel(runner.registration_socket)
        try:
            info = await contracts.call(channel, contracts.GET_INFO, registration.InfoRequest(), timeout=PATIENCE)
            assert (info.type, info.name, info.endpoint) == ("DRAPlugin", Fans.name, str(runner.endpoint))
            assert list(info.supported_versions) == ["v1.DRAPlugin", "v1beta1.DRAPlugin"]
            refused = registration.RegistrationStatus(plugin_registered=False, error="no")
            with pytest.raises(grpc.aio.AioRpcError, match="failed registration process: no"):
                await contracts.call(channel, contracts.NOTIFY, refused, timeout=PATIENCE)
            for _ in range(2):
                accepted = registration.RegistrationStatus(plugin_registered=True)
                await contracts.call(channel, contracts.NOTIFY, accepted, timeout=PATIENCE)
            await runner.registered()
        finally:
            await channel.close()
        for socket in (runner.registration_socket, runner.endpoint):
            socket.unlink()
            await eventually_async(socket.exists, "a lost socket must come back")
        claim = await world.allocate("c", "fan-0")
        assert (await world.prepare(claim))[claim.metadata.uid].error == ""
    assert not runner.registration_socket.exists()
    assert not runner.endpoint.exists()


async def test_health_is_reported_at_once_and_when_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "REPEAT_SECONDS", 3600.0)

    class Monitored(Fans):
        healthy: bool | None = True

        def health(self) -> list[driver.Health]:
            return [driver.Health("fan-0", self.healthy, "rpm 3000", timeout=60)]

    fans = Monitored()
    async with driver_world(fans) as world:
        assert world.channel is not None
        for version, method in contracts.WATCH_HEALTH.items():
            fans.healthy = True
            fans.changed()
            stream: Any = contracts.stream(world.channel, method, method.request())
            states = [1]
            async for report in stream:
                for device in report.devices:
                    assert (device.device.pool_name, device.device.device_name) == (NODE, "fan-0"), version
                    assert (device.message, device.health_check_timeout_seconds) == ("rpm 3000", 60)
                    states += [device.health] if device.health != states[-1] else []
                if report.devices and states == [1]:
                    fans.healthy = False
                fans.changed()
                if states[-1] == 2:
                    break
            stream.cancel()


async def test_health_is_repeated_only_while_the_driver_says_something(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "REPEAT_SECONDS", 0.05)

    reports = health.HealthReports(NODE, 0.3)
    count = 0

    async def watch() -> None:
        nonlocal count
        async for _ in reports.watch():
            count += 1

    watching = asyncio.create_task(watch())
    heard = [driver.Health("fan-0", healthy=True)]
    reports.put(heard)
    await eventually_async(lambda: not reports.put(heard) and count > 3, "the report was not repeated")
    await asyncio.sleep(1.0)  # by now the driver has been silent for longer than two looks take
    before = count
    await asyncio.sleep(0.3)
    watching.cancel()
    assert before == count
