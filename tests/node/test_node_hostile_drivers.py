"""A driver that means harm has the agent do little more for it than for others, and takes nothing from them."""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from dray.node import registration
from dray.node.drivers import DriverIdentity, Drivers
from dray.node.health import DeviceKey
from dray.node.health_pace import AT_ONCE, PAUSE_SECONDS, HealthPace
from dray.node.plugin_watch import AT_ONCE as ASKED_AT_ONCE
from dray.node.plugin_watch import MOST, PluginWatch
from dray.process.clock import RealClock
from loop_turns import LoopTurns
from node_world import DRIVER, local_world
from patience import eventually_async

SETTINGS = b"\0\0\0\4\0\0\0\0\0"
ACKNOWLEDGED = b"\0\0\0\4\1\0\0\0\0"


async def test_a_driver_that_hangs_up_again_and_again_is_called_back_later_and_later(tmp_path: Path) -> None:
    calls = 0

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal calls
        calls += 1
        writer.write(SETTINGS)
        await reader.read(64)
        writer.write(ACKNOWLEDGED)
        await asyncio.sleep(0.002)
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_unix_server(hang_up, tmp_path / "dra.sock")
    drivers, told = Drivers(), list[str]()
    drivers.on_change(told.append)
    drivers.add(DriverIdentity(DRIVER, tmp_path / "dra.sock", "v1.DRAPlugin", None))
    await eventually_async(lambda: calls)
    await asyncio.sleep(2)
    await drivers.close()
    server.close()
    assert calls < 20
    assert len(told) <= 2 * calls + 1


async def test_thousands_of_sockets_take_no_time_from_others_and_drivers_that_are_registered_stay() -> None:
    async with local_world() as world:
        registry = world.root / "plugins_registry"
        await world.driver()
        with ExitStack() as opened:
            for number in range(1500):
                made = opened.enter_context(socket.socket(socket.AF_UNIX))
                made.bind(str(registry / f"!{number}"))  # before all others by name
                made.close()
            watch: PluginWatch = world.agent._plugins
            turns = LoopTurns(asyncio.get_running_loop())
            await world.until(lambda: len(watch._tasks) == MOST)
            await asyncio.sleep(1)
            assert turns.longest < 0.05
        assert list(world.agent.drivers) == [DRIVER]
        for path in registry.glob("!*"):
            path.unlink()
        await world.driver("late.example.com")


async def test_of_many_plugins_a_few_are_asked_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running, most, done = 0, 0, list[Path]()

    async def ask(path: Path, _drivers: Drivers) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        done.append(path)

    monkeypatch.setattr(registration, "register", ask)
    for number in range(40):
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(tmp_path / f"{number}.sock"))
    watch = PluginWatch(tmp_path, Drivers(), RealClock())
    await watch.look()
    await asyncio.gather(*watch._tasks.values())
    assert (most, len(done)) == (ASKED_AT_ONCE, 40)


def test_a_driver_that_changes_its_mind_all_the_time_is_told_of_every_few_seconds() -> None:
    pace = HealthPace()
    gpu, other = DeviceKey(DRIVER, "node-1", "gpu-0"), DeviceKey("b.example.com", "node-1", "gpu-0")
    told = [now for now in range(600) if pace.take(DRIVER, {gpu}, now / 10) or pace.due(now / 10)]
    assert told[:AT_ONCE] == list(range(AT_ONCE))
    assert AT_ONCE + 60 / PAUSE_SECONDS - 2 <= len(told) <= AT_ONCE + 60 / PAUSE_SECONDS + 1
    assert pace.take("b.example.com", {other}, 59.9) == {other}
    assert pace.due(59.9 + PAUSE_SECONDS) == {gpu}
    assert pace.due(1000.0) == set()
    assert pace.take(DRIVER, {gpu}, 1000.0) == {gpu}
    assert pace.take(DRIVER, set(), 1000.0) == set()
