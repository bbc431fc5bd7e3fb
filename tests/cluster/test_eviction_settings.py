"""What an admin can switch: gates, the taint manager, how patient node lifecycle is. On a real server."""

import time
from typing import Any

import pytest

from controller_world import World, controller_world, manifest
from dray.controllers.settings import ControllerSettings, NodeLifecycleSettings
from dray.process.clock import as_time
from eviction_objects import ago, device_slice, ensure_namespace, leaving, rule, run_pod, taint, toleration, use_devices
from local_server import local_server

DEVICE = "device-taint-eviction-controller"
NODE = "taint-eviction-controller"
LIFECYCLE = "node-lifecycle-controller"
UNREACHABLE = "node.kubernetes.io/unreachable"


def off(*gates: str) -> ControllerSettings:
    return ControllerSettings(disabled_gates=frozenset(gates))


async def use_both(world: World) -> None:
    """One pod on a device that its driver tainted, one on a device that a rule names, one on a device that is gone."""
    await world.create(device_slice("pool", devices=[{"name": "gpu-0", "taints": [taint()]}, {"name": "gpu-1"}]))
    await use_devices(world, "a", "gpu-0", pods=("driver",))
    await use_devices(world, "b", "gpu-1", pods=("rule",))
    await use_devices(world, "c", "old-gpu", pods=("name",))
    await world.create(rule(selector={"device": "gpu-1"}), rule("gone", selector={"device": "old-gpu"}))
    await world.settle(10)


@pytest.mark.req("5055-114", "5055-115", "SVS-14", "5055-108")
@pytest.mark.parametrize(
    ("settings", "gone"),
    [
        (ControllerSettings(), {"driver", "rule", "name"}),
        (off("DRADeviceTaintRules"), {"driver"}),
        (off("DRADeviceTaints", "DRADeviceTaintRules"), set()),
    ],
)
async def test_gates_of_device_taints(settings: ControllerSettings, gone: set[str]) -> None:
    async with controller_world(DEVICE, settings=settings) as world:
        await use_both(world)
        assert await leaving(world) == gone
        conditions = (await world.get("devicetaintrules", "rule")).status.conditions
        assert bool(conditions) == ("rule" in gone)


@pytest.mark.req("5055-115", "5055-116")
async def test_a_gate_that_is_on_again_evicts() -> None:
    async with local_server() as server:
        settings = off("DRADeviceTaints", "DRADeviceTaintRules")
        async with controller_world("*", server=server, settings=settings) as world:
            assert DEVICE not in world.manager.controllers
            assert NODE in world.manager.controllers
            await use_both(world)
            assert await leaving(world) == set()
        async with controller_world("*", server=server) as world:
            await world.settle(10)
            assert await leaving(world) == {"driver", "rule", "name"}


@pytest.mark.req("5055-100", "5055-57", "X-11", "3902-01")
@pytest.mark.parametrize(
    ("off", "gone"), [(DEVICE, {"plain", "tolerant"}), (NODE, {"user"}), ("", {"plain", "tolerant", "user"})]
)
async def test_each_of_the_two_evicts_without_the_other(off: str, gone: set[str]) -> None:
    """What a claim tolerates is about devices: the taint of the node has the same key, and does not care."""
    wanted = [name for name in (DEVICE, NODE) if name != off]
    async with controller_world(*wanted) as world:
        await world.create(device_slice("pool", "gpu-0", "gpu-1"))
        await use_devices(world, "a", "gpu-0", pods=("user",))
        there = {"nodeName": "node-2"}
        await use_devices(world, "b", "gpu-1", pods=("tolerant",), tolerations=(toleration(),), pod_spec=there)
        await run_pod(world, "plain", **there)
        await world.create(manifest("v1", "Node", "node-2"), rule())
        await world.patch("nodes", "node-2", {"spec": {"taints": [taint()]}})
        await world.settle(10)
        assert await leaving(world) == gone


@pytest.mark.req("SVS-67", "3902-19", "3902-35", "3902-07", "3902-13", "3902-20", "3902-01", "3902-33")
@pytest.mark.parametrize(
    ("wanted", "enabled", "runs"),
    [
        (("*",), True, True),
        (("*",), False, False),
        ((LIFECYCLE,), True, False),
        (("*", "taint-manager"), False, True),  # --controllers has the last word
        (("*", "-taint-manager"), True, False),
    ],
)
async def test_the_taint_manager_by_configuration_and_by_list(
    wanted: tuple[str, ...], enabled: bool, runs: bool
) -> None:
    settings = ControllerSettings(enable_no_execute_taint_manager=enabled)
    async with controller_world(*wanted, settings=settings) as world:
        await world.create(manifest("v1", "Node", "node-1"))
        assert (NODE in world.manager.health()) == runs
        assert LIFECYCLE in world.manager.health()
        await run_pod(world, "pod")
        await world.patch("nodes", "node-1", {"spec": {"taints": [taint()]}})
        await world.settle(5)
        assert await leaving(world) == ({"pod"} if runs else set())
        assert not any(world.manager.health().values())


async def silent_nodes(world: World, count: int, zone: str = "a") -> None:
    """Nodes that have reported once and never do again, beside one that is well."""
    await ensure_namespace(world, "kube-node-lease")
    for number in range(count):
        labels = {"topology.kubernetes.io/zone": zone}
        await world.create(manifest("v1", "Node", f"node-{number}", meta={"labels": labels}))
        await _report(world, f"node-{number}")


async def _report(world: World, name: str) -> None:
    now = str(as_time(world.clock.now()))
    condition = {"type": "Ready", "status": "True", "lastHeartbeatTime": now, "lastTransitionTime": now}
    await world.patch("nodes", name, {"status": {"conditions": [condition]}}, "status")


async def unreachable(world: World) -> set[str]:
    """The nodes with the NoExecute taint of nodes that do not answer."""
    found = await world.objects("nodes")
    return {one.metadata.name for one in found if (UNREACHABLE, "NoExecute") in _taints(one)}


def _taints(node: Any) -> set[tuple[str, str]]:
    return {(one.key, one.effect) for one in node.spec.taints}


async def live(world: World, seconds: float, *names: str) -> None:
    """Time passes while these nodes report."""
    for _ in range(round(seconds)):
        for name in names:
            await _report(world, name)
        await world.settle(1)


@pytest.mark.parametrize(("grace", "period"), [(10.0, 1.0), (30.0, 5.0)])
async def test_how_long_a_node_may_be_silent(grace: float, period: float) -> None:
    settings = ControllerSettings(node_lifecycle=NodeLifecycleSettings(grace_period=grace, monitor_period=period))
    async with controller_world(LIFECYCLE, settings=settings) as world:
        await silent_nodes(world, 2)
        await live(world, grace - 1, "node-0")
        assert await unreachable(world) == set()
        await live(world, 2 + period, "node-0")
        assert await unreachable(world) == {"node-1"}


async def test_how_many_nodes_are_tainted_a_second() -> None:
    fast = NodeLifecycleSettings(grace_period=5, monitor_period=1, taint_rate=1.0, unhealthy_share=1.0)
    async with controller_world(LIFECYCLE, settings=ControllerSettings(node_lifecycle=fast)) as world:
        await silent_nodes(world, 8)
        await live(world, 7, "node-0")
        before = len(await unreachable(world))
        await live(world, 3, "node-0")
        assert len(await unreachable(world)) - before == 3


@pytest.mark.parametrize(("large_zone", "is_tainted"), [(5, True), (50, False)])
async def test_what_an_unhealthy_zone_and_a_large_one_are(large_zone: int, is_tainted: bool) -> None:
    chosen = NodeLifecycleSettings(
        grace_period=5, monitor_period=1, secondary_taint_rate=1.0, large_zone=large_zone, unhealthy_share=0.4
    )
    async with controller_world(LIFECYCLE, settings=ControllerSettings(node_lifecycle=chosen)) as world:
        await silent_nodes(world, 8)
        await live(world, 20, "node-0", "node-1", "node-2")
        assert bool(await unreachable(world)) == is_tainted


async def test_a_node_that_never_reported_gets_its_own_time() -> None:
    chosen = NodeLifecycleSettings(grace_period=5, startup_grace_period=40, monitor_period=1)
    async with controller_world(LIFECYCLE, settings=ControllerSettings(node_lifecycle=chosen)) as world:
        await silent_nodes(world, 1)
        await world.create(manifest("v1", "Node", "quiet"))
        await live(world, 38, "node-0")
        assert await unreachable(world) == set()
        await live(world, 5, "node-0")
        assert await unreachable(world) == {"quiet"}


@pytest.mark.req("3902-34", "5055-99")
async def test_what_eviction_costs_grows_with_those_who_leave_and_not_with_those_who_stay() -> None:
    async def seconds(bystanders: int) -> float:
        """CPU time of evicting 100 pods, among others."""
        async with controller_world(DEVICE, NODE) as world:
            await world.create(manifest("v1", "Node", "node-1"), manifest("v1", "Node", "node-2"))
            for number in range(bystanders):
                await run_pod(world, f"other-{number}", nodeName="node-2")
            for number in range(100):
                await run_pod(world, f"p{number}")
            await world.settle(1)
            began = time.process_time()
            await world.patch("nodes", "node-1", {"spec": {"taints": [taint()]}})
            await world.clock.advance(1, turns=500)
            spent = time.process_time() - began
            assert len(await leaving(world)) == 100
            return spent

    few = min(await seconds(0), await seconds(0))
    many = min(await seconds(600), await seconds(600))
    assert many < 2 * few + 0.1


@pytest.mark.req("5055-122", "5055-18")
async def test_a_rate_that_an_older_server_dropped_counts_as_the_default() -> None:
    def as_older_releases_store_it(made: dict[str, Any]) -> dict[str, Any]:
        kept = ("key", "value", "effect", "timeAdded")
        made["spec"]["taint"] = {name: value for name, value in made["spec"]["taint"].items() if name in kept}
        return made

    async with controller_world(DEVICE) as world:
        await world.create(device_slice("pool", "gpu-0"))
        await use_devices(world, "claim", "gpu-0", pods=tuple(f"p{number:02}" for number in range(40)))
        await world.create(as_older_releases_store_it(rule(evictionsPerSecond=1000)))
        await world.settle(1.05)
        assert len(await leaving(world)) == 20


@pytest.mark.req("5055-145")
async def test_the_condition_is_called_as_the_api_says() -> None:
    async with controller_world(DEVICE) as world:
        await world.create(rule(timeAdded=ago(world, 1)))
        await world.settle(5)
        types = [one.type for one in (await world.get("devicetaintrules", "rule")).status.conditions]
        assert types == ["EvictionInProgress"]
