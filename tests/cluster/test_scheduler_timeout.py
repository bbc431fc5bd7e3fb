"""A search for devices that takes too long: the pod stays pending, is told why, and is tried again."""

from __future__ import annotations

import asyncio

import pytest

from dray.api.generated.core import Event, Pod
from dray.api.registry import by_kind
from dray.scheduler.scheduler import Scheduler
from local_server import LocalServer, local_server, typed
from scale_up_objects import node, waiting
from snapshot_objects import claim, device, device_class, resource_slice

NODES, PODS, EVENTS = by_kind("v1", "Node"), by_kind("v1", "Pod"), by_kind("v1", "Event")


async def with_scheduler(server: LocalServer, filter_seconds: float) -> Pod:
    """The pod after a scheduler with so much time per node has had its turn."""
    scheduler = Scheduler(server.component("kube-scheduler"), server.clock, filter_seconds=filter_seconds)
    task = asyncio.get_running_loop().create_task(scheduler.run())
    await server.clock.advance(2.0, turns=200)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    pod = await server.client().get(PODS, "ml", "slow")
    assert isinstance(pod, Pod)
    return pod


@pytest.mark.req("4381-219")
async def test_the_pod_is_told_and_scheduled_when_there_is_time() -> None:
    async with local_server() as server:
        admin = server.client()
        here = node("node-1")
        objects = [here, device_class(), resource_slice("node-1", device("gpu-0")), claim("c", match="numa")]
        await admin.create(typed({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}}))
        for obj in (*objects, waiting("slow", claim="c")):
            await admin.create(typed(obj))
        await admin.patch(NODES, "", "node-1", {"spec": {"taints": None}})
        await admin.patch(NODES, "", "node-1", {"status": here["status"]}, subresource="status")
        pending = await with_scheduler(server, filter_seconds=-1.0)
        [condition] = pending.status.conditions
        assert (condition.type, condition.status) == ("PodScheduled", "False")
        assert "timed out trying to allocate devices" in condition.message
        events = [event for event in (await admin.list(EVENTS, "ml")).items if isinstance(event, Event)]
        reasons = [event.reason for event in events if "timed out trying" in event.message]
        assert reasons == ["FailedScheduling"]
        scheduled = await with_scheduler(server, filter_seconds=10.0)
        assert scheduled.spec.node_name == "node-1"
