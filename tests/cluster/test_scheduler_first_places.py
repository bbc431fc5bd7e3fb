"""Pods that are stored with their node: decided on as they come, where nobody waits who should come first."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

import builders
from dray.allocator.faults import FaultLog
from dray.api.generated.core import Pod
from dray.api.kinds import EVENTS
from dray.api.resource import ResourceClaimStatus
from dray.scheduler import scheduler as scheduler_module
from dray.scheduler.first_places import LOST_SECONDS
from local_server import typed
from scheduler_world import CLAIMS, PODS, World, scheduler_world


@contextlib.asynccontextmanager
async def world_with_places() -> AsyncIterator[World]:
    """Two nodes with a device each, a template, and a scheduler that the server asks about new pods."""
    async with scheduler_world() as world:
        await world.add_class()
        await world.add_node("node-1", "gpu-0")
        await world.add_node("node-2", "gpu-0")
        await world.create(builders.claim_template("one", builders.request()))
        world.server.component("resource-claim-controller").make_claims_with_pods(lambda *_: None)
        world.server.component("kube-scheduler").give_nodes_with_pods(world.scheduler.place)
        await world.settle()
        yield world


async def add(world: World, name: str, **spec: Any) -> Pod:
    pod = builders.pod(name, claims=[builders.pod_claim("gpu", template="one")])
    pod["spec"] |= spec
    made: Pod = await world.create(pod)
    return made


async def test_a_pod_comes_with_its_node_and_its_devices_while_there_are_some() -> None:
    async with world_with_places() as world:
        placed = [await add(world, name) for name in ("a", "b")]
        assert sorted(pod.spec.node_name for pod in placed) == ["node-1", "node-2"]
        claims: Any = (await world.admin.list(CLAIMS)).items
        assert [len(claim.status.allocation.devices.results) for claim in claims] == [1, 1]
        assert not (await add(world, "c")).spec.node_name
        await world.settle()
        assert "cannot allocate all claims" in await world.message("c")
        events: Any = (await world.admin.list(EVENTS)).items
        told = sorted(event.involved_object.name for event in events if event.reason == "Scheduled")
        assert told == ["a", "b"]
        assert world.scheduler.bound == 2
        await world.admin.delete(PODS, "default", "a")
        await world.release(next(claim for claim in claims if claim.metadata.name.startswith("a-")))
        await world.settle()
        assert (await world.pod("c")).spec.node_name == next(pod for pod in placed).spec.node_name


async def test_pods_that_come_in_one_turn_have_devices_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of a hundred connections may bring one in the same turn, and a new selector is about every device."""
    monkeypatch.setattr(scheduler_module, "DEVICES_JUDGED", 1)
    judged = 0
    judge = FaultLog._judge

    def counted(*arguments: Any) -> int:
        nonlocal judged
        judged += 1
        return judge(*arguments)

    async with world_with_places() as world:
        for number in range(3, 9):
            await world.add_node(f"node-{number}", "gpu-0")
        await world.settle()
        made = await add(world, "first")
        monkeypatch.setattr(FaultLog, "_judge", counted)
        claim: Any = next(iter((await world.admin.list(CLAIMS)).items))
        for number in range(4):
            wanted = replace(claim, metadata=replace(claim.metadata, name=f"c{number}"), status=ResourceClaimStatus())
            named = replace(
                made.spec.resource_claims[0], resource_claim_template_name="", resource_claim_name=f"c{number}"
            )
            spec = replace(made.spec, resource_claims=(named,), node_name="")
            pod = replace(made, metadata=replace(made.metadata, name=f"p{number}", uid=f"p{number}"), spec=spec)
            placement = world.scheduler.place(pod, [wanted])
            assert placement is not None
            placement.failed()
        assert judged == 1
        await asyncio.sleep(0)
        before = judged
        placement = world.scheduler.place(pod, [wanted])
        assert placement is not None
        placement.failed()
        assert judged == before + 1, "and in the next turn it goes on"


async def test_what_cannot_be_stored_is_given_to_others() -> None:
    async with world_with_places() as world:
        cluster = world.scheduler.cluster
        pod: Any = typed(builders.pod("p"))
        pod = replace(pod, metadata=replace(pod.metadata, uid="u1"))
        placement = world.scheduler.place(pod, [])
        assert placement is not None
        assert cluster.node_of("u1") == placement.node
        placement.failed()
        assert not cluster.node_of("u1")


@pytest.mark.parametrize("was_stored", [False, True])
async def test_when_nobody_waits_for_the_outcome_it_is_looked_at_later(was_stored: bool) -> None:
    async with world_with_places() as world:
        cluster = world.scheduler.cluster
        pod: Any = typed(builders.pod("p"))
        pod = replace(pod, metadata=replace(pod.metadata, uid="u1"))
        if was_stored:
            pod = await world.admin.create(replace(pod, spec=replace(pod.spec, scheduler_name="nobody")))
            pod = replace(pod, spec=replace(pod.spec, scheduler_name="default-scheduler"))
            await world.settle()
        placement = world.scheduler.place(pod, [])
        assert placement is not None
        placement.lost()
        await world.settle(LOST_SECONDS / 2)
        assert cluster.node_of(pod.metadata.uid) == placement.node
        await world.settle(LOST_SECONDS)
        assert cluster.node_of(pod.metadata.uid) == (placement.node if was_stored else "")


async def test_who_is_to_be_decided_on_from_the_queue() -> None:
    async with world_with_places() as world:

        async def placed(name: str, **spec: Any) -> bool:
            return bool((await add(world, name, **spec)).spec.node_name)

        assert not await placed("gated", schedulingGates=[{"name": "x"}])
        assert not await placed("foreign", schedulerName="another")
        named = [builders.pod_claim("gpu", template="one"), builders.pod_claim("other", claim="shared")]
        assert not (await world.create(builders.pod("shares", claims=named))).spec.node_name
        world.scheduler.queue._queued.add(next(iter(world.scheduler.queue._entries)))
        assert not await placed("jumps")
        world.scheduler.queue._queued.clear()
        assert await placed("goes")


async def test_a_mistake_in_a_decision_keeps_no_pod_from_being_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    async with world_with_places() as world:

        def fail(*_: Any) -> None:
            raise ValueError("a mistake")

        with monkeypatch.context() as patch:
            patch.setattr("dray.scheduler.first_places.decide", fail)
            assert not (await add(world, "a")).spec.node_name
        await world.settle()
        assert (await world.pod("a")).spec.node_name
