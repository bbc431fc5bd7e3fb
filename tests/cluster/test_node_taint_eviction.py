"""Eviction because of node taints, on a real server, with the controller's own rights and a clock the test moves."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

import builders
from controller_world import World, controller_world, manifest
from dray.api import codec
from dray.api.status import ApiError
from dray.controllers import Manager, SelectionError
from dray.live.overview import Evicting
from eviction_objects import ago, leaving, run_pod
from local_server import local_server

NAME = "taint-eviction-controller"
KEY = "example.com/maintenance"

Taint = dict[str, Any]


@contextlib.asynccontextmanager
async def node_taint_world(*controllers: str) -> AsyncIterator[World]:
    """Runs a story with the controller and one node."""
    async with controller_world(*(controllers or (NAME,))) as world:
        await world.create(manifest("v1", "Node", "node-1"))
        yield world


def taint(effect: str = "NoExecute", key: str = KEY, **more: Any) -> Taint:
    return builders.taint(key, effect, **more)


def toleration(seconds: int | None = None, key: str = KEY, **more: Any) -> dict[str, Any]:
    return builders.toleration(key, seconds, **more)


async def set_taints(world: World, *taints: Taint) -> None:
    await world.patch("nodes", "node-1", {"spec": {"taints": list(taints)}})


@pytest.mark.req("3902-03", "3902-09", "3902-10", "3902-12", "3902-33", "SVS-69")
async def test_tolerations_decide_who_stays_and_how_long() -> None:
    async with node_taint_world() as world:
        await run_pod(world, "forever", tolerations=[toleration()])
        await run_pod(world, "minute", tolerations=[toleration(60)])
        await run_pod(world, "never")
        await run_pod(world, "elsewhere", nodeName="node-2")
        await set_taints(world, taint())
        await world.settle(59)
        assert await leaving(world) == {"never"}
        await world.settle(2)
        assert await leaving(world) == {"never", "minute"}
        await world.settle(3600)
        assert await leaving(world) == {"never", "minute"}
        never = await world.get("pods", "never")
        marked = next(one for one in never.status.conditions if one.type == "DisruptionTarget")
        assert (marked.status, marked.reason) == ("True", "DeletionByTaintManager")
        assert await world.events("never") == [("TaintManagerEviction", "Marking for deletion Pod default/never")]


@pytest.mark.req("SVS-70", "X-06")
async def test_time_counts_from_when_the_taint_is_seen_not_from_what_it_says() -> None:
    async with node_taint_world() as world:
        await run_pod(world, "minute", tolerations=[toleration(60)])
        await set_taints(world, taint(timeAdded=ago(world, 3600)))
        await world.settle(55)
        assert await leaving(world) == set()
        await world.settle(6)
        assert await leaving(world) == {"minute"}


@pytest.mark.req("3902-09", "3902-10", "SVS-70")
@pytest.mark.parametrize(
    ("tolerations", "stays_for"),
    [
        ([toleration(20), toleration(5, "example.com/second")], 5),
        ([toleration(), toleration(5, "example.com/second")], 5),
        ([toleration(), toleration(key="example.com/second")], None),
        ([toleration(20)], 0),
        ([toleration(-3), toleration(key="example.com/second")], 0),
        ([{"operator": "Exists"}], None),
        ([{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 7}], 7),
    ],
)
async def test_of_several_taints_the_shortest_time_counts(
    tolerations: list[dict[str, Any]], stays_for: int | None
) -> None:
    async with node_taint_world() as world:
        await run_pod(world, "pod", tolerations=tolerations)
        await set_taints(world, taint(), taint(key="example.com/second"))
        await world.settle(stays_for - 0.5 if stays_for else 0.01)
        assert await leaving(world) == ({"pod"} if stays_for == 0 else set())
        await world.settle(100 if stays_for is None else 1)
        assert await leaving(world) == (set() if stays_for is None else {"pod"})


@pytest.mark.req("3902-16", "implied-4")
async def test_removing_the_taint_in_time_cancels() -> None:
    async with node_taint_world() as world:
        await run_pod(world, "minute", tolerations=[toleration(60)])
        await set_taints(world, taint())
        await world.settle(50)
        await set_taints(world)
        await world.settle(100)
        assert await leaving(world) == set()
        assert await world.events("minute") == [
            ("TaintManagerEviction", "Cancelling deletion of Pod default/minute"),
        ]
        await set_taints(world, taint())
        await world.settle(50)
        assert await leaving(world) == set()


@pytest.mark.req("3902-05")
async def test_a_pod_that_comes_to_a_tainted_node_leaves_and_a_deleted_node_is_forgotten() -> None:
    async with node_taint_world() as world:
        await set_taints(world, taint())
        await world.settle(10)
        await run_pod(world, "late")
        await run_pod(world, "patient", tolerations=[toleration(60)])
        await world.settle()
        assert await leaving(world) == {"late"}
        await world.delete("nodes", "node-1")
        await world.settle(120)
        assert await leaving(world) == {"late"}


async def test_a_pod_that_gets_another_toleration_keeps_the_time_that_has_passed() -> None:
    async with node_taint_world() as world:
        await run_pod(world, "pod", tolerations=[toleration(60)])
        await set_taints(world, taint())
        await world.settle(30)
        known = codec.to_builtins((await world.get("pods", "pod")).spec.tolerations)
        await world.patch("pods", "pod", {"spec": {"tolerations": [*known, toleration(key="example.com/more")]}})
        await world.settle(29)
        assert await leaving(world) == set()
        await world.settle(2)
        assert await leaving(world) == {"pod"}


@pytest.mark.parametrize("effect", ["NoSchedule", "PreferNoSchedule"])
async def test_other_effects_evict_nobody(effect: str) -> None:
    async with node_taint_world() as world:
        await run_pod(world, "pod")
        await set_taints(world, taint(effect))
        await world.settle(100)
        assert await leaving(world) == set()


@pytest.mark.req("3902-14", "3902-15")
async def test_budgets_do_not_hold_pods_back_and_nothing_is_forced() -> None:
    async with node_taint_world() as world:
        selector = {"matchLabels": {"app": "a"}}
        await world.create(
            manifest("policy/v1", "PodDisruptionBudget", "all", spec={"minAvailable": "100%", "selector": selector})
        )
        await run_pod(world, "pod", terminationGracePeriodSeconds=40)
        await world.patch("pods", "pod", {"metadata": {"labels": {"app": "a"}}})
        await set_taints(world, taint())
        await world.settle(100)
        pod = await world.get("pods", "pod")
        assert pod.metadata.deletion_grace_period_seconds == 40


@pytest.mark.req("3902-13", "3902-17", "3902-20", "3902-22", "3902-23", "3902-27", "SVS-66")
@pytest.mark.parametrize("name", [NAME, "taint-manager", "TaintManager", "NoExecuteTaintManager"])
async def test_it_can_be_switched_off_by_any_of_its_names(name: str) -> None:
    async with node_taint_world("*", f"-{name}") as world:
        assert NAME not in world.manager.health()
        await run_pod(world, "pod")
        await set_taints(world, taint())
        await world.settle(10)
        assert await leaving(world) == set()


@pytest.mark.req("3902-26", "3902-27")
async def test_switched_off_and_on_again_it_evicts_those_who_are_still_there() -> None:
    async with local_server() as server:
        for wanted, gone in ((("*", "-taint-manager"), set[str]()), (("*",), {"pod"})):
            async with controller_world(*wanted, server=server) as world:
                if not gone:
                    await world.create(manifest("v1", "Node", "node-1"))
                    await run_pod(world, "pod")
                    await set_taints(world, taint())
                await world.settle(10)
                assert await leaving(world) == gone


@pytest.mark.req("3902-08", "3902-18", "3902-01", "3902-38")
async def test_it_is_on_by_default_and_each_controller_has_a_name() -> None:
    async with node_taint_world("*") as world:
        assert {NAME, "node-lifecycle-controller", "device-taint-eviction-controller"} <= world.manager.health().keys()
    with pytest.raises(SelectionError, match="enable-taint-manager"):
        async with node_taint_world("enable-taint-manager"):
            pass


@pytest.mark.req("3902-28", "SVS-68")
async def test_metrics() -> None:
    async with node_taint_world() as world:
        await run_pod(world, "a")
        await run_pod(world, "b", tolerations=[toleration(5)])
        await set_taints(world, taint())
        await world.settle(10)
        assert world.metric("taint_eviction_controller_pod_deletions_total") == 2
        assert world.metric("taint_eviction_controller_pod_deletion_duration_seconds_count") == 2
        assert (world.metric("taint_eviction_controller_pod_deletion_duration_seconds_bucket", le="0.1")) == 2


@pytest.mark.req("3902-30")
async def test_five_tries_and_then_later_and_later() -> None:
    async with node_taint_world() as world:
        client: Any = world.manager.controllers[NAME]._client  # type: ignore[attr-defined]
        delete, moments = client.delete, []

        async def fail(*_: Any) -> None:
            moments.append(round(world.clock.monotonic() - start, 3))
            raise ApiError(500, "InternalError", "the server is not well")

        client.delete = fail
        await run_pod(world, "pod")
        start = world.clock.monotonic()
        await set_taints(world, taint())
        await world.settle(0.042)
        assert moments == [0.0, 0.01, 0.02, 0.03, 0.04]
        await world.settle(5)
        assert len(moments) > 10
        client.delete = delete
        await world.settle(20)
        assert await leaving(world) == {"pod"}


async def test_a_new_pod_of_the_same_name_survives() -> None:
    async with node_taint_world() as world:
        await run_pod(world, "pod", tolerations=[toleration(30)])
        await set_taints(world, taint())
        await world.settle(20)
        await world.delete("pods", "pod", grace_period_seconds=0)
        await run_pod(world, "pod", tolerations=[toleration(30)])
        await world.settle(20)
        assert await leaving(world) == set()
        await world.settle(11)
        assert await leaving(world) == {"pod"}


@pytest.mark.req("3902-26", "implied-6")
async def test_a_restart_evicts_those_who_are_left() -> None:
    async with local_server() as server:
        async with controller_world(NAME, server=server) as world:
            await world.create(manifest("v1", "Node", "node-1"))
            await run_pod(world, "patient", tolerations=[toleration(60)])
            await set_taints(world, taint())
            await world.settle(30)
        async with controller_world(NAME, server=server) as world:
            await run_pod(world, "new")
            await world.settle(50)
            assert await leaving(world) == {"new"}
            await world.settle(11)
            assert await leaving(world) == {"new", "patient"}


@pytest.mark.req("3902-34")
async def test_a_thousand_pods_leave_at_once() -> None:
    async with node_taint_world() as world:
        for number in range(1000):
            await run_pod(world, f"p{number}")
        await set_taints(world, taint())
        await world.clock.advance(1, turns=3000)
        assert len(await leaving(world)) == 1000


@pytest.mark.req("3902-06", "3902-31")
async def test_what_keeps_it_from_starting_is_said() -> None:
    async with local_server() as server:
        stranger = server.component("resource-claim-controller")
        manager = Manager(stranger, server.clock, wanted=(NAME,))
        task = asyncio.get_running_loop().create_task(manager.run())
        await server.clock.advance(1)
        assert manager.health()[NAME].startswith("failed to start the taint manager: waiting for nodes: ")
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def set_rate(world: World, text: str | None) -> None:
    await world.patch("nodes", "node-1", {"metadata": {"annotations": {"dray.dev/evictions-per-second": text}}})


@pytest.mark.req("implied-9")
async def test_pods_leave_at_the_rate_that_the_node_says_and_faster_once_it_says_so() -> None:
    async with node_taint_world() as world:
        for number in range(30):
            await run_pod(world, f"pod-{number}")
        await set_rate(world, f"{KEY}:NoExecute=1")
        await set_taints(world, taint())
        await world.settle(0.5)
        assert len(await leaving(world)) == 10
        await world.settle(5)
        assert len(await leaving(world)) == 15
        controller = world.manager.controllers[NAME]
        assert isinstance(controller, Evicting)
        assert controller.pending_evictions == 15
        await set_rate(world, f"{KEY}:NoExecute=10")
        await world.settle(1)
        assert 24 <= len(await leaving(world)) <= 26
        await set_rate(world, None)
        await world.settle(0.1)
        assert len(await leaving(world)) == 30


@pytest.mark.req("implied-4", "implied-6", "3902-16")
async def test_a_new_controller_goes_on_at_the_rate_and_stops_with_the_taint() -> None:
    async with local_server() as server:
        async with controller_world(NAME, server=server) as world:
            await world.create(manifest("v1", "Node", "node-1"))
            for number in range(40):
                await run_pod(world, f"pod-{number}")
            await set_rate(world, f"{KEY}:NoExecute=1")
            await set_taints(world, taint())
            await world.settle(3.5)
            before = await leaving(world)
            assert len(before) == 13
        async with controller_world(NAME, server=server) as world:
            await world.settle(2.4)
            after = await leaving(world)
            assert before < after
            assert len(after) == 13 + 10 + 2
            await set_taints(world)
            await world.settle(100)
            assert await leaving(world) == after
            said = [("TaintManagerEviction", f"Marking for deletion Pod default/{name}") for name in sorted(before)]
            assert [event for name in sorted(before) for event in await world.events(name)] == said


async def test_a_rate_that_cannot_be_read_is_told_and_the_default_counts() -> None:
    async with node_taint_world() as world:
        for number in range(30):
            await run_pod(world, f"pod-{number}")
        await set_rate(world, "5")
        await set_taints(world, taint())
        await world.settle(0.5)
        assert len(await leaving(world)) == 15
        (event,) = await world.events("node-1")
        assert event[0] == "InvalidEvictionRate"
        assert event[1].startswith("Annotation dray.dev/evictions-per-second: '5' is not KEY:NoExecute=RATE. ")
        assert "evict 10 pods a second until it is corrected" in event[1]
        await set_rate(world, f"{KEY}:NoExecute=1000")
        await world.settle(0.5)
        assert len(await leaving(world)) == 30
        assert await world.events("node-1") == [event]
