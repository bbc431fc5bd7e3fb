"""Device taint eviction through restarts, failures, clocks that are set, and beside the eviction from nodes."""

import contextlib
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from controller_world import World, controller_world, manifest
from device_taint_world import NAME, device_taint_world, set_slice_taints, status
from dray.api.status import ApiError
from dray.process.clock import as_time
from eviction_objects import (
    KEY,
    ago,
    device_slice,
    leaving,
    rule,
    run_pod,
    taint,
    toleration,
    use_devices,
)
from local_server import local_server


@pytest.mark.req("5055-88", "implied-6")
async def test_a_restart_neither_forgets_nor_repeats() -> None:
    async with local_server() as server:
        async with controller_world(NAME, server=server) as world:
            await world.create(device_slice("pool", "gpu-0", "gpu-1"))
            await use_devices(world, "many", "gpu-0", pods=tuple(f"p{number:02}" for number in range(40)))
            await use_devices(world, "patient", "gpu-1", pods=("patient",), tolerations=(toleration(60),))
            await world.create(rule())
            await world.settle(1)
            before = await leaving(world)
            assert 0 < len(before) < 40
        await server.clock.advance(20)
        async with controller_world(NAME, server=server) as world:
            await world.settle(5)
            assert len(await leaving(world)) == 40
            await world.settle(30)
            assert "patient" not in await leaving(world)
            await world.settle(6)
            assert "patient" in await leaving(world)
            for name in before:
                assert await world.events(name) == [("DeviceTaintManagerEviction", "Marking for deletion")]


@pytest.mark.req("5055-77")
async def test_a_pool_that_is_being_replaced_keeps_its_taints() -> None:
    async with device_taint_world() as world:
        await use_devices(world, "claim", "gpu-0", pods=("user",), tolerations=(toleration(30),))
        await set_slice_taints(world, taint(timeAdded=ago(world, 0)))
        await world.settle(10)
        pool = {"name": "pool", "generation": 2, "resourceSliceCount": 2}
        second = device_slice("pool", "gpu-9", pool=pool)
        second["metadata"]["name"] = "pool-second"
        await world.create(second)
        await world.settle(10)
        assert await world.events("user") == []
        await world.settle(15)
        assert await leaving(world) == {"user"}


class Flaky:
    """A server whose pod deletions fail for a while."""

    def __init__(self, world: World) -> None:
        self._client = world.manager.controllers[NAME]._client  # type: ignore[attr-defined]
        self._delete = self._client.delete
        self.failures = 0

    @contextlib.asynccontextmanager
    async def down(self) -> AsyncIterator[None]:
        """While this lasts, deletions fail."""

        async def fail(*_: Any) -> None:
            self.failures += 1
            raise ApiError(500, "InternalError", "the server is not well")

        self._client.delete = fail
        try:
            yield
        finally:
            self._client.delete = self._delete


@pytest.mark.req("3902-30")
async def test_a_failing_server_is_tried_again_and_counts_as_pending() -> None:
    async with device_taint_world() as world:
        flaky = Flaky(world)
        await use_devices(world, "claim", "gpu-0", pods=("user",))
        async with flaky.down():
            await world.create(rule())
            await world.settle(12)
            assert flaky.failures > 3
            assert (await status(world)).reason == "PodsPendingEviction"
        await world.settle(40)
        assert await leaving(world) == {"user"}
        assert (await status(world)).reason == "Completed"
        assert "1 pod evicted" in (await status(world)).message


@pytest.mark.req("5055-88", "implied-8")
async def test_setting_the_wall_clock_moves_deadlines_not_rates() -> None:
    async with device_taint_world() as world:
        await use_devices(world, "claim", "gpu-0", pods=tuple(f"p{number:02}" for number in range(40)))
        await use_devices(world, "patient", "gpu-1", pods=("patient",), tolerations=(toleration(3600),))
        await world.create(rule())
        await world.settle(0.1)
        world.clock.jump(-3000)
        await world.settle(3)
        assert len(await leaving(world)) == 40
        world.clock.jump(3000 + 3600)
        await world.settle(31)
        assert "patient" in await leaving(world)


@pytest.mark.req("implied-8", "5055-15")
@pytest.mark.parametrize(
    ("added", "seconds", "leaves_after"),
    [(-10 * 365 * 86400, None, 0), (-10 * 365 * 86400, 60, 0), (60, None, 60), (60, 30, 90), (0, 10**12, None)],
)
async def test_a_time_of_long_ago_or_of_the_future_is_taken_as_it_is(
    added: int, seconds: int | None, leaves_after: int | None
) -> None:
    async with device_taint_world() as world:
        patience = () if seconds is None else (toleration(seconds),)
        await use_devices(world, "claim", "gpu-0", pods=("user",), tolerations=patience)
        await world.create(rule(timeAdded=ago(world, -added)))
        stored = (await world.get("devicetaintrules", "rule")).spec.taint.time_added
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", str(stored))
        await world.settle(max(leaves_after or 0, 2) - 1.5)
        assert await leaving(world) == ({"user"} if leaves_after == 0 else set())
        await world.settle(3)
        assert await leaving(world) == (set() if leaves_after is None else {"user"})


@pytest.mark.req("X-11")
async def test_device_and_node_eviction_at_once_delete_once() -> None:
    async with device_taint_world(NAME, "taint-eviction-controller") as world:
        await world.create(manifest("v1", "Node", "node-1"))
        await use_devices(world, "claim", "gpu-0", pods=("user",))
        await run_pod(world, "plain")
        await world.create(rule())
        await world.patch("nodes", "node-1", {"spec": {"taints": [{"key": KEY, "effect": "NoExecute"}]}})
        await world.settle(5)
        assert await leaving(world) == {"user", "plain"}
        assert all(not why for why in world.manager.health().values())
        user = await world.get("pods", "user")
        assert len([one for one in user.status.conditions if one.type == "DisruptionTarget"]) == 1
        started = as_time(world.clock.now() - 6 + 30)
        assert user.metadata.deletion_timestamp >= started
