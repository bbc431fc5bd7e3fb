"""Selectors that take long: the loop goes on, each is evaluated once, for so long and no longer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from dray import cel
from dray.cel import selector as cel_selector
from dray.reconcile import selector_work
from loop_turns import LoopTurns
from scheduler_world import DRIVER, World, scheduler_world

LONG_SECONDS = 240
"""How long tests wait for what takes a second when nobody else works on the machine."""
FREE = "&&".join(["true"] * 300)
"""Three hundred conditions that cost nothing."""


def heavy(number: int, rounds: int = 20) -> str:
    """A selector that is true after a tenth of a second; its cost is far below the limit."""
    return f"lists.range({rounds}).all(x, lists.range({rounds + number}).all(y, {FREE}))"


@pytest.fixture(autouse=True)
def worked_out(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The expressions that were evaluated beside the loop."""
    done: list[str] = []
    work_out = cel.Selector.work_out

    def noted(self: cel.Selector, *arguments: Any) -> Any:
        done.append(self.expression)
        return work_out(self, *arguments)

    monkeypatch.setattr(cel.Selector, "work_out", noted)
    yield done
    cel_selector._large_ones.clear()


async def _until(condition: Callable[[], Awaitable[bool]], world: World) -> None:
    """Lets the thread work until something is true. Time in the world moves, but hardly."""
    end = time.monotonic() + LONG_SECONDS
    while not await condition():
        assert time.monotonic() < end, "it takes too long"
        await world.clock.advance(0.01, turns=20)
        await asyncio.sleep(0.01)


async def _is_bound(world: World, name: str) -> bool:
    return bool((await world.pod(name)).spec.node_name)


async def test_a_claim_with_twelve_heavy_selectors_stops_nobody() -> None:
    async with scheduler_world() as world:
        await world.add_class()
        await world.add_node("node-1", "gpu-0", "gpu-1")
        selectors = [{"cel": {"expression": heavy(number)}} for number in range(12)]
        await world.add_claim("heavy", selectors=selectors)
        await world.add_claim("light")
        turns = LoopTurns(asyncio.get_running_loop())
        await world.add_pod("slow", "heavy")
        await world.settle()
        await world.add_pod("quick", "light")
        await _until(lambda: _is_bound(world, "quick"), world)
        assert not await _is_bound(world, "slow")
        await _until(lambda: _is_bound(world, "slow"), world)
        print("longest", turns.longest)
        assert turns.longest < 0.25  # all of them together take more than a second


@pytest.mark.req("4381-106", "4381-107", "4381-108")
async def test_what_takes_too_long_is_given_up_and_not_tried_again_for_every_pod(worked_out: list[str]) -> None:
    async with scheduler_world(filter_seconds=0.3) as world:
        expression = heavy(1, rounds=400)
        await world.add_class()
        await world.add_node("node-1", "gpu-0")
        for name in ("one", "two"):
            await world.add_claim(name, selectors=[{"cel": {"expression": expression}}])
        await world.add_pod("one", "one")

        async def is_told(name: str = "one") -> bool:
            return "timed out trying to allocate devices" in await world.message(name)

        await _until(is_told, world)
        tries = len(worked_out)
        await world.add_pod("two", "two")
        await _until(lambda: is_told("two"), world)
        assert len(worked_out) == tries
        await world.settle(selector_work.AGAIN_SECONDS * 1.2)

        async def is_tried_again() -> bool:
            return len(worked_out) > tries

        await _until(is_tried_again, world)


@pytest.mark.req("4381-108")
async def test_a_node_whose_devices_take_too_long_does_not_keep_a_pod_from_another() -> None:
    slow = {"name": "gpu-0", "attributes": {"slow": {"bool": True}}}
    quick = {"name": "gpu-0", "attributes": {"slow": {"bool": False}}}
    async with scheduler_world(filter_seconds=0.3) as world:
        await world.add_class()
        await world.add_node("node-1", slow)
        await world.add_node("node-2", quick)
        expression = f'!device.attributes["{DRIVER}"].slow || {heavy(2, rounds=400)}'
        await world.add_claim("c", selectors=[{"cel": {"expression": expression}}])
        await world.add_pod("p", "c")
        await _until(lambda: _is_bound(world, "p"), world)
        assert (await world.pod("p")).spec.node_name == "node-2"


async def test_a_taint_rule_with_a_heavy_selector_takes_effect_when_it_is_evaluated() -> None:
    async with scheduler_world() as world:
        await world.add_class()
        await world.add_node("node-1", "gpu-0")
        await world.settle()
        turns = LoopTurns(asyncio.get_running_loop())
        spec = {
            "deviceSelector": {"selectors": [{"cel": {"expression": heavy(3)}}]},
            "taint": {"key": "example.com/bad", "effect": "NoSchedule"},
        }
        await world.add("resource.k8s.io/v1beta2", "DeviceTaintRule", "heavy", spec=spec)

        async def is_tainted() -> bool:
            return any(device.taints for device in world.scheduler.cluster.tracker.devices())

        await _until(is_tainted, world)
        assert turns.longest < 0.25
        await world.add_claim("c")
        await world.add_pod("p", "c")
        await world.settle()
        assert not await _is_bound(world, "p")
