"""How far an eviction is, as `dray taint --wait` sees it: a real server and controller, on a clock the test moves."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime

import pytest

from controller_world import World, controller_world, manifest, pod
from dray.api import codec
from dray.api.generated.core import Taint
from dray.api.references import ObjectRef
from dray.api.taints import TaintName
from dray.api.times import Time
from dray.cli.waiting import Ending
from dray.controllers.eviction.drainer import Drainer, draining
from dray.controllers.eviction.progress import NodeProgress, Standing
from dray.controllers.settings import ControllerSettings
from dray.eviction.drain import Drain, DrainTerms
from dray.eviction.settings import EvictionSettings, Limit, PolicyChoice
from dray.snapshot.snapshot import from_objects
from dray.what_if.drain_preview import paced
from dray.what_if.taint_preview import preview_nodes

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

    async def until(self, world: World, is_so: Callable[[Standing], bool]) -> Standing:
        """As soon as watches have told what was written: on a busy machine that takes some turns more."""
        for _ in range(100):
            await world.settle(0)
            if is_so(now := await self()):
                return now
        return now


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


async def test_a_node_that_is_deleted_meanwhile_is_told_apart_from_one_that_lost_the_taint() -> None:
    """It was said that the taint was gone there."""
    async with drained_nodes(None) as (world, look):
        await world.settle(0.5)
        await world.delete("nodes", "node-2")
        now = await look.until(world, lambda now: bool(now.deleted))
        assert (now.untainted, now.deleted, now.is_called_off) == (("node-2",), ("node-2",), False)
        ending = Ending(now, 1.0, True, drains=True)
        assert "  Called off for node-2: the node is gone." in ending.tell_others().splitlines()
        assert "the taint is gone" not in ending.tell_others()
        assert ending.code == 1
        await world.delete("nodes", "node-1")
        now = await look.until(world, lambda now: now.is_called_off)
        assert (now.deleted, now.is_called_off) == (("node-1", "node-2"), True)


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
    """A policy keeps all of them: a guard would let the last ones go, who are no more than its limit."""
    async with drained_nodes(EvictionSettings(policy=PolicyChoice("checkpoint"))) as (world, look):
        await world.settle(5)
        for number in range(PODS):
            if number % 2:
                await world.patch("pods", f"pod-{number}", {"status": {"phase": "Succeeded"}}, "status")
            else:
                there = (await world.get("pods", f"pod-{number}")).spec.tolerations
                tolerations = [*codec.to_builtins(there), {"key": KEY, "operator": "Exists"}]
                await world.patch("pods", f"pod-{number}", {"spec": {"tolerations": tolerations}})
        now = await look.until(world, lambda now: now.is_idle)
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


@pytest.mark.parametrize("rate", [1, 3, 10, None])
async def test_everybody_leaves_a_drained_node_when_its_preview_said(rate: int | None) -> None:
    """Where no budget is in the way: one by one at its rate, and who tolerates the taint for a time after that."""
    terms = DrainTerms(rate=rate)
    async with controller_world("disruption-controller") as world:
        await world.create(manifest("v1", "Node", "node-1"))
        for number in range(PODS):
            waits = [{"key": KEY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 6}]
            await world.create(pod(f"pod-{number}", nodeName="node-1", tolerations=waits if number % 5 == 2 else []))
        await world.settle(2.0)  # to the second, as times are told
        node, pods = await world.get("nodes", "node-1"), await world.objects("pods")
        evicting = Taint(key=KEY, effect="NoExecute")
        snapshot, began = from_objects([node, *pods]), world.clock.now()
        now = datetime.fromtimestamp(began, UTC)
        preview = paced(preview_nodes(snapshot, [node], [evicting], now, drains=True), terms, (), snapshot)
        drained = {"annotations": {"dray.dev/drain": f"{KEY}:NoSchedule"}}
        taints = [{"key": KEY, "effect": "NoSchedule"}]
        await world.patch("nodes", "node-1", {"metadata": drained, "spec": {"taints": taints}})
        moving = map(ObjectRef.of, pods)
        names = [TaintName(KEY, "NoSchedule")]
        progress = NodeProgress(world.admin, world.clock, ("node-1",), names, moving, drains=True)
        left: dict[str, float] = {}
        async with draining(Drainer(world.admin, world.clock, progress, Drain(terms))):
            while len(left) < PODS and world.clock.now() < began + 60:
                await world.settle(0.1)
                for one in await world.objects("pods"):
                    if one.metadata.deletion_timestamp is not None:
                        left.setdefault(f"default/{one.metadata.name}", world.clock.now() - began)
        await progress.stop()
    told = {one.pod: Time.parse(one.expected).datetime().timestamp() - began for one in preview.pods}
    assert left.keys() == told.keys()
    assert {name: (told[name], at) for name, at in left.items() if not -1.0 <= at - told[name] <= 1.5} == {}
    assert preview.finished is not None
    assert abs(Time.parse(preview.finished).datetime().timestamp() - began - max(left.values())) <= 1.5
