"""What can be switched in the scheduler: the gates that concern it, and the time limit of a search."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dray.all_in_one.cluster import Cluster, ClusterSettings
from dray.controllers.settings import ControllerSettings
from dray.scheduler.scheduler import Scheduler
from dray.server.instance import ServerSettings
from scheduler_world import DRIVER, scheduler_world


@pytest.mark.req("4381-205", "4381-215")
async def test_without_the_gate_claims_are_not_looked_at() -> None:
    async with scheduler_world("DynamicResourceAllocation") as here:
        await here.add_node("a")
        await here.add_pod("p", "there-is-none")
        await here.settle()
        assert (await here.pod("p")).spec.node_name == "a"
    off = ControllerSettings(disabled_gates=frozenset({"DynamicResourceAllocation"})).switched_off()
    assert off == ("-resourceclaim-controller", "-device-taint-eviction-controller")


@pytest.mark.req("4381-120")
async def test_without_hints_a_released_device_is_used_later() -> None:
    async with scheduler_world("SchedulerQueueingHints") as here:
        await here.add_node("a", "gpu-0")
        await here.add_class()
        for name in ("c1", "c2"):
            await here.add_claim(name)
        await here.add_pod("p1", "c1")
        await here.settle()
        await here.add_pod("p2", "c2")
        await here.settle(0.1)
        assert "cannot allocate all claims" in await here.message("p2")
        await here.release(await here.claim("c1"))
        await here.settle(0.1)
        assert not (await here.pod("p2")).spec.node_name, "its pause is not over"
        await here.settle(20)
        assert (await here.pod("p2")).spec.node_name == "a"


@pytest.mark.req("4381-106")
async def test_the_time_for_a_node_can_be_set(tmp_path: Path) -> None:
    plan = ClusterSettings(server=ServerSettings(directory=tmp_path, port=0), filter_seconds=2.5)
    made = Cluster(plan)
    try:
        assert made.scheduler.options.max_seconds == 2.5
    finally:
        await made.stop()


async def test_who_leads_again_begins_anew(tmp_path: Path) -> None:
    made = Cluster(ClusterSettings(server=ServerSettings(directory=tmp_path, port=0)))
    used: list[Scheduler] = []
    try:
        for _ in range(3):  # nobody had a pod to decide on
            leading = asyncio.create_task(made._run_scheduler())
            await asyncio.sleep(0)
            assert made.scheduler not in used
            used.append(made.scheduler)
            leading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await leading
    finally:
        await made.stop()


@pytest.mark.req("4381-95", "4381-113")
async def test_a_claim_that_is_reserved_is_unreserved_before_it_is_deallocated() -> None:
    async with scheduler_world() as here:
        await here.add_node("a", "gpu-0")
        await here.add_node("b", "gpu-0")
        await here.add_class()
        await here.add_claim("c")
        await here.add_pod("p", "c", nodeSelector={"only": "b"})
        await here.settle()
        uid = (await here.pod("p")).metadata.uid
        selector = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
        result = {"request": "r", "driver": DRIVER, "pool": "a", "device": "gpu-0"}
        allocation = {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [selector]}}
        status = {"allocation": allocation, "reservedFor": [{"resource": "pods", "name": "p", "uid": uid}]}
        await here.patch_claim("c", status)
        await here.label_node("b", {"only": "b"})
        here.client.writes.clear()
        await here.settle(60)
        assert (await here.pod("p")).spec.node_name == "b"
        assert here.client.writes[:2] == ["update ResourceClaim/status", "update ResourceClaim/status"]
