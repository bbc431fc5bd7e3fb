"""Drivers are found in the registry directory, checked, told what came of it, and followed as they come and go."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from dray.node.plugin_watch import find_sockets
from dray.plugins import unix
from dray.plugins.generated import registration_pb2 as registration
from node_world import DRIVER, NodeWorld, local_world
from patience import eventually_async
from scripted_driver import ScriptedDriver


@pytest.mark.req("4381-150", "SVS-54", "4381-152", "4381-213")
@pytest.mark.parametrize("kind", ["DRAPlugin", "ResourcePlugin"])
@pytest.mark.parametrize(
    ("versions", "used"),
    [
        (["v1.DRAPlugin"], "v1.DRAPlugin"),
        (["v1beta1.DRAPlugin"], "v1beta1.DRAPlugin"),
        (["v1beta1.DRAPlugin", "v1.DRAPlugin"], "v1beta1.DRAPlugin"),
        (["v7.DRAPlugin", "v1.DRAPlugin", "v1beta1.DRAPlugin"], "v1.DRAPlugin"),
    ],
)
async def test_both_plugin_types_and_both_versions_work(kind: str, versions: list[str], used: str) -> None:
    async with local_world() as world:
        driver = ScriptedDriver(world.root)
        driver.info = registration.PluginInfo(
            type=kind, name=DRIVER, endpoint=str(driver.endpoint), supported_versions=versions
        )
        await world.start_driver(driver)
        await world.until(lambda: bool(driver.notified))
        assert [(one.plugin_registered, one.error) for one in driver.notified] == [(True, "")]
        assert world.agent.drivers.instance(DRIVER).identity.version == used
        await world.claim("c", "gpu-0")
        await world.pod("p", claims=["c"])
        await world.phase("p", "Running")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"type": "CSIPlugin"}, "plugin type 'CSIPlugin' is not one of DRAPlugin, ResourcePlugin"),
        ({"name": "not a name!"}, "driver name 'not a name!'"),
        ({"name": "x" * 64}, "driver name"),
        ({"name": ""}, "driver name"),
        ({"endpoint": "dra.sock"}, "not an absolute path"),
        ({"supported_versions": []}, "offers none; the node needs one of v1.DRAPlugin, v1beta1.DRAPlugin"),
        ({"supported_versions": ["v9.DRAPlugin", "v1.DRAResourceHealth"]}, "offers 'v9.DRAPlugin'"),
    ],
)
async def test_a_plugin_that_does_not_fit_is_told_why_and_not_used(changes: dict[str, object], why: str) -> None:
    async with local_world() as world:
        driver = ScriptedDriver(world.root)
        given = {
            "type": "DRAPlugin",
            "name": DRIVER,
            "endpoint": str(driver.endpoint),
            "supported_versions": ["v1.DRAPlugin"],
        }
        driver.info = registration.PluginInfo(**{**given, **changes})  # type: ignore[arg-type]
        await world.start_driver(driver)
        await world.until(lambda: len(driver.notified) >= 2)  # and again, later
        assert not driver.notified[0].plugin_registered
        assert why in driver.notified[0].error
        assert not list(world.agent.drivers)


@pytest.mark.req("4381-153")
async def test_of_two_instances_the_newest_is_used_and_none_is_lost() -> None:
    async with local_world() as world:
        old = await world.driver(instance="old")
        await world.publish("kept")
        new = await world.driver(instance="new")
        await world.until(lambda: world.agent.drivers.instance(DRIVER).identity.endpoint == new.endpoint)
        await world.claim("c1", "gpu-0")
        await world.pod("p1", claims=["c1"])
        await world.phase("p1", "Running")
        assert (old.prepared, new.prepared) == ([], [["c1"]])
        # The upgrade is rolled back: the old instance is still there, and no moment passes without one.
        await new.stop()
        await world.until(lambda: world.agent.drivers.instance(DRIVER).identity.endpoint == old.endpoint)
        await world.claim("c2", "gpu-1")
        await world.pod("p2", claims=["c2"])
        await world.phase("p2", "Running")
        assert old.prepared == [["c2"]]
        await asyncio.sleep(2 * world.settings.wipe_delay)
        assert await world.slices() == ["kept"]


async def test_a_driver_that_registers_twice_at_one_endpoint_is_registered_once() -> None:
    async with local_world() as world:
        first = await world.driver()
        second = ScriptedDriver(world.root, instance="again")
        second.info = first.info
        await world.start_driver(second)
        await world.until(lambda: bool(second.notified))
        assert not second.notified[0].plugin_registered
        assert "already registered for DRA driver plugin gpu.example.com" in second.notified[0].error
        await world.claim("c", "gpu-0")
        await world.pod("p", claims=["c"])
        await world.phase("p", "Running")
        assert first.prepared == [["c"]]


async def test_a_process_that_claims_to_be_another_driver_at_its_own_endpoint_is_refused() -> None:
    async with local_world() as world:
        honest = await world.driver()
        liar = ScriptedDriver(world.root, "other.example.com")
        liar.info = registration.PluginInfo(
            type="DRAPlugin", name="tpu.example.com", endpoint=str(honest.endpoint), supported_versions=["v1.DRAPlugin"]
        )
        await world.start_driver(liar)
        await world.until(lambda: bool(liar.notified))
        assert not liar.notified[0].plugin_registered
        assert list(world.agent.drivers) == [DRIVER]


async def test_a_plugin_that_hangs_holds_up_no_other() -> None:
    async with local_world() as world:
        with socket.socket(socket.AF_UNIX) as silent:
            silent.bind(str(world.root / "plugins_registry" / "silent-reg.sock"))
            silent.listen()
            await world.driver()
            assert list(world.agent.drivers) == [DRIVER]


async def test_an_endpoint_may_be_the_registration_socket_itself() -> None:
    async with local_world() as world:
        driver = ScriptedDriver(world.root)
        driver.endpoint = driver.registry.with_name("x.sock")
        driver.info.endpoint = ""
        await world.start_driver(driver)
        await world.until(lambda: bool(driver.notified))
        assert world.agent.drivers.instance(DRIVER).identity.endpoint == driver.registry


@pytest.mark.req("4381-154", "4381-155", "SVS-56")
async def test_slices_go_when_the_agent_starts_and_when_a_driver_stays_away() -> None:
    async with local_world(started=False) as world:
        await world.publish("stale")
        await world.publish("elsewhere", node="node-2")
        await world.start()
        await _slices(world, ["elsewhere"])
        driver = await world.driver()
        await world.driver("other.example.com")
        await world.publish("mine")
        await world.publish("others", driver="other.example.com")
        await driver.stop()
        await _slices(world, ["elsewhere", "others"])


@pytest.mark.req("SVS-56")
async def test_slices_of_a_driver_that_crashed_go_although_its_sockets_stay() -> None:
    async with local_world() as world:
        driver = await world.driver()
        await world.publish("mine")
        await driver.stop(leave_sockets=True)
        await _slices(world, [])
        # Its next instance makes the sockets anew, and is registered.
        driver.notified.clear()
        await driver.start()
        await world.until(lambda: bool(driver.notified) and world.agent.drivers.is_connected(DRIVER))


@pytest.mark.req("4381-153", "SVS-56")
async def test_a_driver_that_is_back_in_time_keeps_its_slices() -> None:
    async with local_world() as world:
        driver = await world.driver()
        await world.publish("mine")
        world.agent._wiper._delay = 30.0
        await driver.stop()
        await world.until(lambda: not world.agent.drivers.is_connected(DRIVER))
        await driver.start()
        await world.until(lambda: world.agent.drivers.is_connected(DRIVER))
        await world.until(lambda: not world.agent._wiper._pending)
        assert await world.slices() == ["mine"]


async def _slices(world: NodeWorld, names: list[str]) -> None:
    async def are_there() -> bool:
        return await world.slices() == names

    await eventually_async(are_there, f"there are not just {names}")


async def test_only_sockets_with_plain_names_are_plugins(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    names = ("a.sock", ".hidden.sock", "sub/b.sock")
    servers = [await unix.listen(tmp_path / name, ()) for name in names]
    (tmp_path / "file.sock").write_text("no socket")
    assert {one.path.name for one in find_sockets(tmp_path)} == {"a.sock", "b.sock"}
    assert list(find_sockets(tmp_path / "missing")) == []
    for server in servers:
        await server.stop(None)


@pytest.mark.req("4381-244")
async def test_a_driver_has_one_connection_however_many_claims_it_has() -> None:
    async with local_world() as world:
        drivers = [await world.driver("a.example.com"), await world.driver("b.example.com")]
        for number in range(8):
            for driver in drivers:
                name = f"{driver.name[0]}-{number}"
                await world.claim(name, f"gpu-{number}", driver=driver.name)
                await world.pod(name, claims=[name])
        for number in range(8):
            await world.phase(f"a-{number}", "Running")
            await world.phase(f"b-{number}", "Running")
        assert [_connections(driver.endpoint) for driver in drivers] == [1, 1]


def _connections(socket: Path) -> int:
    """How many connections the listener at a path has accepted that are still open."""
    connected = "03"
    rows = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:]]
    return sum(row[-1] == str(socket) and row[5] == connected for row in rows)
