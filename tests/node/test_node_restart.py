"""An agent that is started again goes on where it was, whatever happened meanwhile, and leaks nothing."""

from __future__ import annotations

import asyncio

import pytest

from dray.api.generated.core import Pod
from dray.node import checkpoint
from dray.node.agent import Agent, AgentError
from dray.node.checkpoint import FILE
from dray.node.runtime import Order, Running
from dray.node.runtime.interface import OnExit
from dray.node.runtime.none import NoRuntime
from dray.plugins.generated import dra_v1_pb2 as dra
from node_world import NodeWorld, local_world


async def restart(world: NodeWorld) -> None:
    """Another process on the same machine: nothing in memory is left."""
    await world.stop()
    world.runtime = NoRuntime(world.clock)
    await world.start()


async def running_pod(world: NodeWorld) -> None:
    await world.claim("c", "gpu-0")
    await world.pod("p", claims=["c"])
    await world.phase("p", "Running")


@pytest.mark.req("4381-163", "4381-174", "4381-241")
async def test_a_restarted_agent_prepares_again_leaves_pods_running_and_unprepares_later() -> None:
    async with local_world() as world:
        driver = await world.driver()
        await running_pod(world)
        before = await world.get("p")
        await restart(world)
        await world.until(lambda: driver.prepared == [["c"], ["c"]])
        after = await world.get("p")
        assert before is not None
        assert after is not None
        assert after.status.container_statuses == before.status.container_statuses
        assert [record.pods for record in world.agent.book] == [(before.metadata.uid,)]
        await world.delete("p")
        await world.gone("p")
        assert driver.unprepared == [["c"]]


async def test_a_pod_that_was_forced_away_meanwhile_is_unprepared() -> None:
    async with local_world() as world:
        driver = await world.driver()
        await running_pod(world)
        await world.stop()
        await world.delete("p", grace=0)
        await world.start()
        await world.until(lambda: driver.unprepared == [["c"]])
        await world.until(lambda: len(world.agent.book) == 0)


async def test_a_pod_that_was_deleted_meanwhile_ends_in_good_order() -> None:
    async with local_world() as world:
        driver = await world.driver()
        await running_pod(world)
        await world.stop()
        await world.delete("p")
        await restart(world)
        await world.gone("p")
        assert driver.unprepared == [["c"]]


@pytest.mark.req("4381-165", "4381-172")
@pytest.mark.parametrize("fate", ["goes on", "is deleted"])
async def test_a_crash_in_the_middle_of_preparing_is_made_good(fate: str) -> None:
    async with local_world() as world:
        driver = await world.driver()
        asked = asyncio.Event()

        async def hang(request: dra.NodePrepareResourcesRequest) -> dra.NodePrepareResourcesResponse:
            driver.held |= {claim.uid for claim in request.claims}  # it is done, but nobody hears of it
            asked.set()
            await asyncio.sleep(60)
            raise AssertionError("unreachable")

        driver.prepare = hang
        await world.claim("c", "gpu-0")
        await world.pod("p", claims=["c"])
        await asked.wait()
        await world.stop()
        driver.prepare = driver.prepare_well
        if fate == "is deleted":
            await world.delete("p", grace=0)
        await world.start()
        if fate == "goes on":
            await world.phase("p", "Running")
        else:
            await world.until(lambda: not driver.held)
            await world.until(lambda: len(world.agent.book) == 0)


async def test_a_crash_in_the_middle_of_unpreparing_is_made_good() -> None:
    async with local_world() as world:
        driver = await world.driver()
        await running_pod(world)
        driver.unprepare_error = "not now"
        await world.delete("p")
        await world.event("FailedUnprepareDynamicResources", "not now")
        await world.stop()
        driver.unprepare_error = ""
        await restart(world)
        await world.gone("p")
        assert not driver.held


async def test_after_a_restart_of_the_machine_claims_are_prepared_before_containers_start() -> None:
    async with local_world() as world:
        driver = await world.driver()
        await world.claim("c", "gpu-0")
        pod = await world.pod("p", claims=["c"], restartPolicy="Always")
        await world.phase("p", "Running")
        await world.stop()
        driver.held.clear()
        started_with: list[bool] = []

        class Empty(NoRuntime):
            """A runtime after a power cut: nothing runs any more."""

            def recover(self, _pod: Pod, _on_exit: OnExit, /) -> dict[str, Running]:
                return {}

            async def start(self, order: Order, on_exit: OnExit) -> Running:
                started_with.append(bool(driver.held))
                return await super().start(order, on_exit)

        world.boot = "boot-2"
        world.runtime = Empty(world.clock)
        await world.start()
        await world.until(lambda: bool(started_with))
        assert started_with == [True]
        again = await world.phase("p", "Running")
        assert again.metadata.uid == pod.metadata.uid
        assert again.status.container_statuses[0].restart_count == 1


@pytest.mark.parametrize("damage", ["garbage", "truncated", "flipped", "empty", "other version"])
async def test_a_damaged_checkpoint_is_set_aside_and_told_and_nothing_is_leaked(damage: str) -> None:
    async with local_world() as world:
        driver = await world.driver()
        await running_pod(world)
        await world.stop()
        path = world.root / FILE
        good = path.read_bytes()
        bad = {
            "garbage": b"\x00\xff not json",
            "truncated": good[: len(good) // 2],
            "flipped": good.replace(b'"gpu-0"', b'"gpu-9"'),
            "empty": b"",
            "other version": good.replace(b"dray/v1", b"dray/v9"),
        }[damage]
        path.write_bytes(bad)
        await world.delete("p")
        await restart(world)
        assert await world.event("DamagedCheckpoint", "is damaged")
        await world.gone("p")
        assert not driver.held
        assert [one.read_bytes() for one in world.root.glob(f"{FILE}.damaged-*")] == [bad]


async def test_with_both_checkpoints_damaged_claims_are_prepared_again_as_their_pods_need_them() -> None:
    async with local_world() as world:
        driver = await world.driver()
        await running_pod(world)
        await world.stop()
        for path in (world.root / FILE, world.root / f"{FILE}.previous"):
            path.write_bytes(b"?")
        await restart(world)
        await world.until(lambda: len(driver.prepared) == 2)
        await world.until(lambda: len(world.agent.book) == 1)
        await world.delete("p")
        await world.gone("p")
        assert not driver.held


async def test_a_driver_that_answers_otherwise_after_a_restart_is_believed_and_that_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with local_world() as world:
        driver = await world.driver()
        await running_pod(world)
        driver.devices["c"] = [
            dra.Device(pool_name="node-1", device_name="gpu-0", cdi_device_ids=["example.com/gpu=new"])
        ]
        await restart(world)
        await world.until(lambda: [*next(iter(world.agent.book)).cdi_ids("")] == ["example.com/gpu=new"])
        told = "prepared ResourceClaim default/c differently than before the restart"
        await world.until(lambda: told in caplog.text)


async def test_one_root_directory_has_one_agent() -> None:
    async with local_world() as world:
        other = Agent(world.settings, world.node_client, world.runtime, world.clock, "boot-1")
        with pytest.raises(AgentError, match=r"another dray node \(pid \d+\) uses .* give another --root"):
            await other.run()


async def test_a_root_that_cannot_be_used_is_refused() -> None:
    async with local_world(started=False) as world:
        (world.root / FILE).mkdir()
        with pytest.raises(AgentError, match="cannot read"):
            Agent(world.settings, world.node_client, world.runtime, world.clock)
        settings = type(world.settings)(name="n", root=world.root / FILE / "x" / "\0")
        with pytest.raises((AgentError, ValueError)):
            Agent(settings, world.node_client, world.runtime, world.clock)


async def test_a_root_that_leaves_no_room_for_sockets_is_refused() -> None:
    async with local_world(started=False) as world:
        settings = type(world.settings)(name="n", root=world.root / ("x" * (77 - len(str(world.root)))))
        with pytest.raises(AgentError, match=r"at most 107 bytes\. Give a --root that is at least 2 bytes shorter"):
            Agent(settings, world.node_client, world.runtime, world.clock)
        assert not settings.root.exists()


async def test_saves_that_come_together_share_a_write() -> None:
    async with local_world(started=False) as world:
        saved = checkpoint.Checkpoint(world.root, lambda: checkpoint.State("boot"))
        await asyncio.gather(*(saved.save() for _ in range(100)))
        assert saved.writes <= 2
