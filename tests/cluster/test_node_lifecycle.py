"""Node health, taints and zones, on a real server, with the controller's own rights and a clock the test moves."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

from controller_world import World, controller_world, manifest
from dray.api.generated.core import Node
from dray.api.times import MicroTime
from dray.controllers.node_lifecycle import controller, disruption
from dray.process.clock import as_time
from eviction_objects import ensure_namespace, leaving, run_pod
from loop_turns import LoopTurns

NAME = "node-lifecycle-controller"
TAINT_EVICTION = "taint-eviction-controller"
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"


@contextlib.asynccontextmanager
async def node_lifecycle_world(*controllers: str) -> AsyncIterator[World]:
    """Runs a story with the controller."""
    async with controller_world(*(controllers or (NAME,))) as world:
        await ensure_namespace(world, "kube-node-lease")
        yield world


async def add_node(world: World, name: str, zone: str = "") -> None:
    """A node that reports to be ready."""
    labels = {"topology.kubernetes.io/zone": zone} if zone else {}
    await world.create(manifest("v1", "Node", name, meta={"labels": labels}))
    renewed = _micro(world)
    await world.create(
        manifest("coordination.k8s.io/v1", "Lease", name, "kube-node-lease", spec={"renewTime": renewed})
    )
    await report(world, name)


async def report(world: World, name: str, ready: str = "True", **more: str) -> None:
    """What a kubelet posts."""
    now = str(as_time(world.clock.now()))
    times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
    wanted = {"Ready": ready, "MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False", **more}
    conditions = [{"type": kind, "status": status, "reason": "Kubelet", **times} for kind, status in wanted.items()]
    await world.patch("nodes", name, {"status": {"conditions": conditions}}, "status")


async def live(world: World, seconds: float, *names: str) -> None:
    """Time passes while these nodes renew their leases."""
    end = world.clock.monotonic() + seconds
    while world.clock.monotonic() < end:
        for name in names:
            await world.patch("leases", name, {"spec": {"renewTime": _micro(world)}}, namespace="kube-node-lease")
        await world.settle(min(10, end - world.clock.monotonic()))


def _micro(world: World) -> str:
    return str(MicroTime.of(as_time(world.clock.now()).datetime()))


async def taints(world: World, name: str) -> set[tuple[str, str]]:
    found = await world.get("nodes", name)
    return {(taint.key, taint.effect) for taint in found.spec.taints}


def both(key: str) -> set[tuple[str, str]]:
    return {(key, "NoSchedule"), (key, "NoExecute")}


@pytest.mark.req("3902-02", "3902-04", "3902-20", "3902-24")
async def test_a_node_that_is_not_heard_of_becomes_unreachable_and_its_pods_stay_if_nobody_evicts() -> None:
    async with node_lifecycle_world() as world:
        await add_node(world, "node-1")
        await add_node(world, "node-2")
        await run_pod(
            world,
            "pod",
            tolerations=[{"key": UNREACHABLE, "operator": "Exists", "tolerationSeconds": 0, "effect": "NoExecute"}],
        )
        await world.patch("pods", "pod", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, "status")
        await live(world, 45, "node-2")
        assert await taints(world, "node-1") == set()
        await live(world, 20, "node-2")
        assert await taints(world, "node-1") == both(UNREACHABLE)
        assert await taints(world, "node-2") == set()
        node = await world.get("nodes", "node-1")
        assert {one.type: (one.status, one.reason) for one in node.status.conditions}["Ready"] == (
            "Unknown",
            "NodeStatusUnknown",
        )
        assert all(taint.time_added is not None for taint in node.spec.taints)
        assert await leaving(world) == set()
        pod = await world.get("pods", "pod")
        assert [one.status for one in pod.status.conditions if one.type == "Ready"] == ["False"]
        assert ("NodeNotReady", "Node is not ready") in await world.events("pod")
        assert ("NodeNotReady", "Node node-1 status is now: NodeNotReady") in await world.events("node-1")


@pytest.mark.req("3902-24", "3902-29", "3902-12")
async def test_with_taint_eviction_a_dead_node_empties_after_five_minutes() -> None:
    async with node_lifecycle_world(NAME, TAINT_EVICTION) as world:
        await add_node(world, "node-1")
        await add_node(world, "node-2")
        await run_pod(world, "pod")
        await live(world, 330, "node-2")
        assert await leaving(world) == set()
        await live(world, 40, "node-2")
        assert await leaving(world) == {"pod"}


async def test_a_node_that_says_itself_that_it_is_not_ready_speaks_for_its_pods() -> None:
    async with node_lifecycle_world() as world:
        await add_node(world, "node-1")
        await add_node(world, "node-2")
        await run_pod(world, "pod")
        await world.patch("pods", "pod", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, "status")
        await report(world, "node-1", "False")
        await live(world, 20, "node-1", "node-2")
        assert await taints(world, "node-1") == both(NOT_READY)
        pod = await world.get("pods", "pod")
        assert [one.status for one in pod.status.conditions if one.type == "Ready"] == ["True"]


async def test_leases_alone_keep_a_node_alive() -> None:
    async with node_lifecycle_world() as world:
        await add_node(world, "node-1")
        await live(world, 600, "node-1")
        assert await taints(world, "node-1") == set()


async def test_status_reports_alone_keep_a_node_alive() -> None:
    async with node_lifecycle_world() as world:
        await add_node(world, "node-1")
        for _ in range(10):
            await world.settle(40)
            await report(world, "node-1")
        assert await taints(world, "node-1") == set()


async def test_recovery_removes_the_taints_at_once() -> None:
    async with node_lifecycle_world() as world:
        await add_node(world, "node-1")
        await add_node(world, "node-2")
        await live(world, 70, "node-2")
        assert await taints(world, "node-1") == both(UNREACHABLE)
        await report(world, "node-1")
        await world.settle()
        assert await taints(world, "node-1") == set()


async def test_a_node_that_says_it_is_not_ready_gets_the_other_taint_and_swaps_it_when_it_dies() -> None:
    async with node_lifecycle_world() as world:
        await add_node(world, "node-1")
        await add_node(world, "node-2")
        await report(world, "node-1", "False")
        await world.settle(15)
        assert await taints(world, "node-1") == both(NOT_READY)
        await live(world, 60, "node-2")
        assert await taints(world, "node-1") == both(UNREACHABLE)


async def test_pressure_and_cordon_keep_new_pods_away() -> None:
    async with node_lifecycle_world() as world:
        await add_node(world, "node-1")
        await report(world, "node-1", DiskPressure="True", NetworkUnavailable="True")
        await world.patch("nodes", "node-1", {"spec": {"unschedulable": True}})
        await world.settle()
        prefix = "node.kubernetes.io/"
        wanted = {(prefix + name, "NoSchedule") for name in ("disk-pressure", "network-unavailable", "unschedulable")}
        assert await taints(world, "node-1") == wanted
        await report(world, "node-1")
        await world.patch("nodes", "node-1", {"spec": {"unschedulable": None}})
        await world.settle()
        assert await taints(world, "node-1") == set()


async def test_taints_of_others_stay() -> None:
    async with node_lifecycle_world() as world:
        await add_node(world, "node-1")
        await add_node(world, "node-2")
        own = {"key": "example.com/own", "effect": "NoExecute"}
        await world.patch("nodes", "node-1", {"spec": {"taints": [own]}})
        await live(world, 70, "node-2")
        assert await taints(world, "node-1") == {("example.com/own", "NoExecute"), *both(UNREACHABLE)}
        await report(world, "node-1")
        await world.settle()
        assert await taints(world, "node-1") == {("example.com/own", "NoExecute")}


async def test_a_node_that_never_reports_is_unreachable_after_a_minute() -> None:
    async with node_lifecycle_world() as world:
        await add_node(world, "node-2")
        await world.create(manifest("v1", "Node", "node-1"))
        await live(world, 55, "node-2")
        assert (await world.get("nodes", "node-1")).status.conditions == ()
        await live(world, 30, "node-2")
        node = await world.get("nodes", "node-1")
        assert {one.reason for one in node.status.conditions} == {"NodeStatusNeverUpdated"}
        assert await taints(world, "node-1") == both(UNREACHABLE)


@pytest.mark.req("3902-11", "3902-38")
async def test_if_all_nodes_seem_dead_nobody_is_evicted_and_all_get_time_when_one_returns() -> None:
    async with node_lifecycle_world(NAME, TAINT_EVICTION) as world:
        names = [f"node-{number}" for number in range(1, 5)]
        for number, name in enumerate(names):
            await add_node(world, name, zone=f"zone-{number % 2}")
        await run_pod(world, "pod")
        await world.settle(600)
        for name in names:
            assert await taints(world, name) == {(UNREACHABLE, "NoSchedule")}
        assert await leaving(world) == set()
        await report(world, "node-4")
        await live(world, 30, "node-4")
        assert await taints(world, "node-4") == set()


async def executed(world: World) -> int:
    """How many nodes have a NoExecute taint."""
    found: list[Any] = await world.objects("nodes")
    return sum(any(taint.effect == "NoExecute" for taint in node.spec.taints) for node in found)


@pytest.mark.req("3902-24")
async def test_nodes_of_a_zone_are_tainted_one_every_ten_seconds() -> None:
    async with node_lifecycle_world() as world:
        alive = [f"alive-{number}" for number in range(8)]
        for name in [*alive, "dead-1", "dead-2", "dead-3"]:
            await add_node(world, name)
        for name in ("dead-1", "dead-2", "dead-3"):
            await report(world, name, "False")
        await live(world, 6, *alive)
        assert await executed(world) == 1
        await live(world, 10, *alive)
        assert await executed(world) == 2
        await live(world, 10, *alive)
        assert await executed(world) == 3


@pytest.mark.req("3902-24")
async def test_a_small_zone_with_many_dead_nodes_stops_another_zone_goes_on() -> None:
    async with node_lifecycle_world() as world:
        for number in range(5):
            await add_node(world, f"small-{number}", "small")
            await add_node(world, f"other-{number}", "other")
        for number in range(4):
            await report(world, f"small-{number}", "False")
        await world.settle(0)
        await report(world, "other-0", "False")
        await world.settle(6)
        before = await executed(world)
        await live(world, 40, "small-4", *(f"other-{number}" for number in range(1, 5)))
        marked = {
            name
            for name in ("small-0", "small-1", "small-2", "small-3")
            if (NOT_READY, "NoExecute") in await taints(world, name)
        }
        assert len(marked) <= 1
        assert await executed(world) == before
        assert (NOT_READY, "NoExecute") in await taints(world, "other-0")


async def test_a_server_that_stood_still_does_not_take_it_for_silence() -> None:
    """The clock goes on while nothing runs, as when the loop is held up or the process is stopped for minutes."""
    async with node_lifecycle_world() as world:
        await add_node(world, "node-1")
        await live(world, 30, "node-1")
        world.clock._now += 300.0
        await world.settle(1)
        assert await ready_status(world, "node-1") == "True"
        await live(world, 60, "node-1")
        assert await ready_status(world, "node-1") == "True"
        await world.settle(60)
        assert await ready_status(world, "node-1") == "Unknown"


async def ready_status(world: World, name: str) -> str:
    node = await world.get("nodes", name)
    return str(next(one.status for one in node.status.conditions if one.type == "Ready"))


async def test_nodes_that_come_and_go_are_announced_once() -> None:
    async with node_lifecycle_world() as world:
        await add_node(world, "a")
        await live(world, 30, "a")
        await world.delete("nodes", "a")
        await world.settle()
        told = [event for event in await world.events("a") if event[0] in ("RegisteredNode", "RemovingNode")]
        assert sorted(told) == [
            ("RegisteredNode", "Node a event: Registered Node a in Controller"),
            ("RemovingNode", "Node a event: Removing Node a from Controller"),
        ]


async def test_thousands_of_nodes_are_looked_at_a_few_in_each_turn_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judged all at once, 5,000 of them kept everybody waiting for 50 ms, every five seconds."""
    monkeypatch.setattr(controller, "AT_ONCE", 3)
    turns = LoopTurns(asyncio.get_running_loop())
    looked_at: Counter[int] = Counter()

    def counting(node: Node) -> bool:
        looked_at[turns.count] += 1
        return disruption.is_counted(node)

    monkeypatch.setattr(controller, "is_counted", counting)
    async with node_lifecycle_world() as world:
        names = [f"node-{number}" for number in range(10)]
        for name in names:
            await add_node(world, name)
        looked_at.clear()
        await live(world, 20, *names)
        assert sum(looked_at.values()) >= 20
        assert max(looked_at.values()) == 3
        await live(world, 60, *names[1:])
        assert [name for name in names if await taints(world, name)] == ["node-0"]


async def test_nobody_is_silent_because_the_loop_stood_still_while_nodes_were_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(controller, "AT_ONCE", 3)
    async with node_lifecycle_world() as world:
        names = [f"node-{number}" for number in range(10)]
        for name in names:
            await add_node(world, name)
        await live(world, 20, *names)
        stalls = [1]

        def stand_still() -> None:
            world.clock._now += 300.0

        def counting(node: Node) -> bool:
            if stalls:
                asyncio.get_running_loop().call_soon(stand_still)
                stalls.clear()
            return disruption.is_counted(node)

        monkeypatch.setattr(controller, "is_counted", counting)
        await world.settle(6)
        assert not stalls
        assert {await ready_status(world, name) for name in names} == {"True"}
