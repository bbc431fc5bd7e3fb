"""A rule that concerns all devices of a large cluster leaves turns of the event loop to others, whoever follows it."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace

from builders import DRIVER, resource_slice, taint, taint_rule, typed
from controller_world import controller_world
from device_taint_world import NAME
from dray.api.resource import Device
from dray.live.viewer import Viewer
from dray.tracker import AT_ONCE
from dray.tracker.current_slice import CurrentSlice
from dray.tracker.pool_part import PoolPart
from local_server import LocalServer, local_server
from loop_turns import LoopTurns
from scheduler_world import RULES, World

SLICES = 400
DEVICES = 8


class Work:
    """The devices that are tainted anew, by turn of the loop."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.turns: Counter[int] = Counter()
        turns = LoopTurns(asyncio.get_running_loop())
        original = CurrentSlice.taint

        def count(state: CurrentSlice, taints: Any) -> None:
            self.turns[turns.count] += len(taints)
            original(state, taints)

        monkeypatch.setattr(CurrentSlice, "taint", count)

    def check(self) -> None:
        """All devices had their turn, and not many of them had the same."""
        assert self.turns.total() == SLICES * DEVICES
        assert max(self.turns.values()) <= AT_ONCE
        self.turns.clear()


async def publish(server: LocalServer) -> None:
    """Many pools, with more devices than have their turn at once."""
    admin = server.client()
    for number in range(SLICES):
        devices = (f"gpu-{each}" for each in range(DEVICES))
        await admin.create(typed(resource_slice(f"s-{number}", *devices, pool=f"pool-{number}", nodeName="node")))


async def put_and_take_away(server: LocalServer, work: Work, settle: Any) -> None:
    await settle(5)
    work.turns.clear()
    await server.client().create(typed(taint_rule("rule", {"driver": DRIVER}, taint("k", "NoExecute"))))
    await settle(5)
    work.check()
    await server.client().delete(RULES, "", "rule")
    await settle(5)
    work.check()


async def test_in_eviction(monkeypatch: pytest.MonkeyPatch) -> None:
    async with local_server() as server:
        await publish(server)
        async with controller_world(NAME, server=server) as world:
            await put_and_take_away(server, Work(monkeypatch), world.settle)


async def test_in_a_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    async with local_server() as server:
        await publish(server)
        world = World(server)
        task = asyncio.get_running_loop().create_task(world.scheduler.run())
        try:
            await put_and_take_away(server, Work(monkeypatch), world.settle)
            assert not any(one.taints for one in world.scheduler.cluster.tracker.devices())
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_a_pool_that_a_driver_publishes_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slice by slice: the pool is not made anew as a whole for each of them."""
    slices, looks = 96, 0
    original = PoolPart._make_view

    def count(part: PoolPart, devices: Any) -> Any:
        nonlocal looks
        looks += 1
        return original(part, devices)

    monkeypatch.setattr(PoolPart, "_make_view", count)
    async with local_server() as server:
        admin = server.client()
        world = World(server)
        task = asyncio.get_running_loop().create_task(world.scheduler.run())
        try:
            await world.settle(5)
            made = [
                typed(resource_slice(f"s-{each:02}", f"d-{each}", pool="p", count=slices)) for each in range(slices)
            ]
            made = [await admin.create(one) for one in made]
            await world.settle(5)
            looks = 0
            changed = [
                replace(one, spec=replace(one.spec, devices=(Device(name=f"e-{one.metadata.name}"),))) for one in made
            ]
            await asyncio.gather(*(admin.update(one) for one in changed))
            await world.settle(5)
            assert 0 < looks <= slices / 8
            shown = world.scheduler.cluster.tracker.devices()
            assert [one.id.device for one in shown] == [f"e-s-{each:02}" for each in range(slices)]
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_in_a_live_view(monkeypatch: pytest.MonkeyPatch) -> None:
    async with local_server() as server:
        await publish(server)
        viewer = Viewer(server.client(), server.clock, pause=0)
        await viewer.start()
        try:
            await put_and_take_away(server, Work(monkeypatch), lambda seconds: server.clock.advance(seconds, turns=30))
            assert not any(one.taints for one in viewer.cluster.tracker.devices())
        finally:
            await viewer.stop()
