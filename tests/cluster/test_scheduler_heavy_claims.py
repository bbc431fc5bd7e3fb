"""Claims that take long: others are scheduled meanwhile, and the pod is told in the end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from dray.allocator.aside import PutAside
from dray.scheduler import search_work
from hostile_claims import pairs, too_few
from scheduler_world import DRIVER, World, scheduler_world

LONG_SECONDS = 240
SLICE_DEVICES = 128


async def _add(world: World, devices: list[dict[str, object]], spec: dict[str, object]) -> None:
    await world.add_class()
    await world.add_node("node-1")
    parts = [devices[first : first + SLICE_DEVICES] for first in range(0, len(devices), SLICE_DEVICES)]
    pool = {"name": "node-1", "generation": 1, "resourceSliceCount": len(parts)}
    for number, part in enumerate(parts):
        slice_spec = {"driver": DRIVER, "nodeName": "node-1", "pool": pool, "devices": part}
        await world.add("resource.k8s.io/v1", "ResourceSlice", f"slice-{number:02}", spec=slice_spec)
    await world.add("resource.k8s.io/v1", "ResourceClaim", "heavy", "default", spec=spec)
    await world.add_claim("light")
    await world.settle(1.0)


async def _until_answered(world: World, name: str) -> str:
    """The pod's node, or why it has none. Lets the threads work; time in the world moves, but hardly."""
    end = time.monotonic() + LONG_SECONDS
    while True:
        pod, message = await world.pod(name), await world.message(name)
        if pod.spec.node_name or message:
            return pod.spec.node_name or message
        assert time.monotonic() < end, "it takes too long"
        await world.clock.advance(0.01, turns=20)
        await asyncio.sleep(0.01)


async def test_a_pod_that_came_later_does_not_wait_for_one_whose_claim_takes_long() -> None:
    async with scheduler_world() as world:
        devices, [spec] = pairs(1_280)
        await _add(world, devices, spec)
        await world.add_pod("slow", "heavy")
        await world.settle()
        await world.add_pod("quick", "light")
        assert await _until_answered(world, "quick") == "node-1"
        assert await _until_answered(world, "slow") == "node-1"


@pytest.mark.req("4381-106", "4381-107")
async def test_a_search_that_takes_longer_than_a_filter_may_is_given_up_and_tried_again_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    searched = 0
    go_on = PutAside.go_on

    def counted(self: PutAside, between: Callable[[], None]) -> Any:
        nonlocal searched
        searched += 1
        return go_on(self, between)

    monkeypatch.setattr(PutAside, "go_on", counted)
    async with scheduler_world(filter_seconds=1e-6) as world:
        devices, [spec] = pairs(1_280)
        await _add(world, devices, spec)
        await world.add_pod("slow", "heavy")
        assert "timed out trying to allocate devices" in await _until_answered(world, "slow")
        assert searched == 1
        await world.add_pod("like-it", "heavy")
        assert "timed out trying to allocate devices" in await _until_answered(world, "like-it")
        assert searched == 1
        await world.settle(search_work.AGAIN_SECONDS * 1.1)
        await asyncio.sleep(0.1)
        assert searched > 1


async def test_what_does_not_fit_is_told_without_holding_anybody_up() -> None:
    async with scheduler_world() as world:
        devices, [spec] = too_few(256)
        await _add(world, devices, spec)
        await world.add_pod("slow", "heavy")
        assert "cannot allocate all claims" in await _until_answered(world, "slow")
