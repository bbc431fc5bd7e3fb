"""How far an eviction is, as `dray taint --wait` sees it: a real server and controller, on a clock the test moves."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import pytest

from controller_world import World, controller_world, manifest, pod
from dray.api import codec
from dray.api.references import ObjectRef
from dray.api.taints import TaintName
from dray.controllers.eviction.drainer import Drainer, draining
from dray.controllers.eviction.progress import NodeProgress, Standing
from dray.controllers.settings import ControllerSettings
from dray.eviction.drain import Drain, DrainTerms
from dray.eviction.settings import EvictionSettings, Limit, PolicyChoice

CONTROLLERS = ("taint-eviction-controller", "disruption-controller")
KEY = "maintenance"
PODS = 14


class Look:
    """At how far it is."""

    def __init__(self, progress: NodeProgress) -> None:
        self.progress = progress

    async def __call__(self) -> Standing:
        await self.progress.ready()
        return self.progress.standing()


@contextlib.asynccontextmanager
async def drained_nodes(settings: EvictionSettings | None) -> AsyncIterator[tuple[World, Look]]:
    """Two nodes with pods of one application, whose budget allows two disruptions, emptied at one pod a second."""
    running = None if settings is None else ControllerSettings(eviction=settings)
    async with controller_world(*CONTROLLERS, settings=running) as world:
        for number in range(PODS):
            node = f"node-{1 + number % 2}"
            await world.create(pod(f"pod-{number}", nodeName=node, meta={"labels": {"app": "web"}}))
            running_now = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            await world.patch("pods", f"pod-{number}", {"status": running_now}, "status")
        spec = {"minAvailable": PODS - 2, "selector": {"matchLabels": {"app": "web"}}}
        await world.create(manifest("policy/v1", "PodDisruptionBudget", "web", "default", spec=spec))
        rate = {"dray.dev/evictions-per-second": f"{KEY}:NoExecute=1@both"}
        for name in ("node-1", "node-2"):
            taints = [{"key": KEY, "effect": "NoExecute"}]
            await world.create(manifest("v1", "Node", name, meta={"annotations": rate}, spec={"taints": taints}))
        pods = [ObjectRef.of(one) for one in await world.objects("pods")]
        progress = NodeProgress(world.admin, world.clock, ("node-1", "node-2"), [TaintName(KEY, "NoExecute")], pods)

        try:
            yield world, Look(progress)
        finally:
            await progress.stop()


async def test_who_waits_for_the_rate_does_not_wait_for_a_budget() -> None:
    async with drained_nodes(None) as (world, look):
        await world.settle(0.5)
        now = await look()
        assert (now.total, now.evicted, now.blocked, now.put_off) == (PODS, 10, 0, 0)
        budget = await world.get("poddisruptionbudgets", "web")
        assert budget.status.disruptions_allowed == 0
        await world.settle(4)
        done = await look()
        assert done.is_evicted
        assert not done.is_called_off


@pytest.mark.parametrize(("policy", "evicted", "blocked", "put_off"), [("pdb", 2, 12, 0), ("checkpoint", 0, 0, 14)])
async def test_who_waits_for_what_a_policy_wants_is_counted(
    policy: str, evicted: int, blocked: int, put_off: int
) -> None:
    async with drained_nodes(EvictionSettings(policy=PolicyChoice(policy))) as (world, look):
        await world.settle(20)
        now = await look()
        assert (now.evicted, now.blocked, now.put_off) == (evicted, blocked, put_off)


async def test_what_the_guard_holds_is_told_with_the_command_that_confirms_it() -> None:
    async with drained_nodes(EvictionSettings(max_evictions=Limit(count=3))) as (world, look):
        await world.settle(5)
        now = await look()
        assert (now.total, now.evicted) == (PODS, 0)
        for node in ("node-1", "node-2"):
            assert f"kubectl annotate --overwrite node {node} dray.dev/confirm-evictions={KEY}" in now.hold


async def test_it_is_called_off_when_the_last_node_has_lost_the_taint() -> None:
    async with drained_nodes(None) as (world, look):
        await world.settle(0.5)
        for node, is_over in (("node-1", False), ("node-2", True)):
            await world.patch("nodes", node, {"spec": {"taints": None}})
            await world.settle(0)
            now = await look()
            assert now.is_called_off is is_over
        assert (now.total, now.evicted, now.staying) == (PODS, 10, PODS - 10), "who stays was to go"


async def test_who_stays_because_a_node_lost_the_taint_is_neither_evicted_nor_waited_for() -> None:
    async with drained_nodes(None) as (world, look):
        await world.settle(0.5)
        left = [one for one in await world.objects("pods") if one.metadata.deletion_timestamp is None]
        staying = [one for one in left if one.spec.node_name == "node-2"]
        assert staying
        await world.patch("nodes", "node-2", {"spec": {"taints": None}})
        await world.settle(0)
        now = await look()
        assert (now.total, now.evicted) == (PODS - len(staying), PODS - len(left))
        assert (now.staying, now.untainted) == (len(staying), ("node-2",))
        await world.settle(len(left) + 1)
        done = await look()
        assert (done.is_evicted, done.evicted, done.staying) == (True, PODS - len(staying), len(staying))


async def test_who_ends_by_itself_or_tolerates_the_taint_by_now_is_not_waited_for() -> None:
    async with drained_nodes(EvictionSettings(max_evictions=Limit(count=3))) as (world, look):
        await world.settle(5)
        for number in range(PODS):
            if number % 2:
                await world.patch("pods", f"pod-{number}", {"status": {"phase": "Succeeded"}}, "status")
            else:
                there = (await world.get("pods", f"pod-{number}")).spec.tolerations
                tolerations = [*codec.to_builtins(there), {"key": KEY, "operator": "Exists"}]
                await world.patch("pods", f"pod-{number}", {"spec": {"tolerations": tolerations}})
        await world.settle(0)
        now = await look()
        assert (now.total, now.gone, now.staying, now.is_idle) == (PODS // 2, PODS // 2, PODS // 2, True)


async def test_a_drain_keeps_its_pace_and_its_deadline_when_the_clock_is_set() -> None:
    """Ahead: nobody leaves in spite of a budget before the deadline. Back: nobody waits for as many hours."""
    stays = PolicyChoice("checkpoint", {"deadline": "1000h"})
    async with drained_nodes(EvictionSettings(policy=stays)) as (world, look):
        progress, drain = look.progress, Drain(DrainTerms(rate=1, deadline=300.0))
        drainer = Drainer(world.admin, world.clock, progress, drain)
        async with draining(drainer):
            await world.settle(0.5)
            world.clock.jump(-36_000)
            await world.settle(20)
            assert (await look()).evicted == 2
            world.clock.jump(2 * 36_000)
            await world.settle(60)
            assert ((await look()).evicted, drain.forced) == (2, set())
            await world.settle(300)
            assert (await look()).is_evicted
            assert len(drain.forced) == PODS - 2
