"""A pod that is more important makes others go, on a real (in-memory) server."""

from __future__ import annotations

from typing import Any

import pytest

from dray.api.meta import DeleteOptions
from dray.api.registry import Kind
from dray.api.status import ApiError
from dray.reconcile import EventRecorder
from dray.scheduler.preemptor import Preemptor
from dray.scheduling.cluster import Cluster
from dray.scheduling.pod_info import read_pod
from dray.scheduling.refusal import Preempts
from scheduler_world import EVENTS, PODS, World, scheduler_world


async def classes(here: World) -> None:
    lower = "PreemptLowerPriority"
    for name, value, policy in (("low", 1, lower), ("high", 10, lower), ("never", 10, "Never")):
        await here.add("scheduling.k8s.io/v1", "PriorityClass", name, value=value, preemptionPolicy=policy)


async def gone(here: World, name: str) -> bool:
    found = [one for one in (await here.admin.list(PODS)).items if one.metadata.name == name]
    return not found or found[0].metadata.deletion_timestamp is not None


async def test_a_more_important_pod_takes_a_device_from_a_less_important_one() -> None:
    async with scheduler_world() as here:
        await classes(here)
        await here.add_node("a", "gpu-0")
        await here.add_class()
        for name in ("c", "d"):
            await here.add_claim(name)
        await here.add_pod("low", "c", priorityClassName="low")
        await here.settle()
        assert (await here.pod("low")).spec.node_name == "a"
        await here.add_pod("never", "d", priorityClassName="never")
        await here.settle()
        assert not await gone(here, "low")
        assert "not eligible due to preemptionPolicy=Never" in await here.message("never")
        await here.admin.delete(PODS, "default", "never", DeleteOptions(grace_period_seconds=0))
        await here.add_pod("high", "d", priorityClassName="high")
        await here.settle()
        assert (await here.pod("high")).status.nominated_node_name == "a"
        victim = await here.pod("low")
        assert victim.metadata.deletion_timestamp is not None
        assert [one.reason for one in victim.status.conditions if one.type == "DisruptionTarget"] == [
            "PreemptionByScheduler"
        ]
        reasons = {getattr(event, "reason", "") for event in (await here.admin.list(EVENTS)).items}
        assert {"Preempted", "FailedScheduling"} <= reasons
        await here.admin.delete(PODS, "default", "low", DeleteOptions(grace_period_seconds=0))
        claim = await here.claim("c")
        await here.release(claim)
        await here.settle()
        assert (await here.pod("high")).spec.node_name == "a"


async def test_who_could_not_be_told_why_keeps_no_node_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was promised a node, and nobody went for it: no other pod came to that node any more."""
    async with scheduler_world() as here:
        await classes(here)
        await here.add_node("a", "gpu-0")
        await here.add_class()
        for name in ("c", "d"):
            await here.add_claim(name)
        await here.add_pod("low", "c", priorityClassName="low")
        await here.settle()
        patch = here.client.patch

        async def failing(kind: Kind, namespace: str, name: str, *rest: Any, **named: Any) -> Any:
            if name == "high":
                raise ConnectionResetError("connection reset")
            return await patch(kind, namespace, name, *rest, **named)

        with monkeypatch.context() as cut:
            cut.setattr(here.client, "patch", failing)
            await here.add_pod("high", "d", priorityClassName="high")
            await here.settle()
            assert not await gone(here, "low")
            assert here.scheduler.cluster.nominations.node_of(read_pod(await here.pod("high"))) == ""
        await here.settle(15)
        assert await gone(here, "low")
        assert (await here.pod("high")).status.nominated_node_name == "a"


async def test_what_is_said_of_a_pod_is_not_said_of_the_next_one_of_its_name() -> None:
    """Between a decision and its writes, a pod may be replaced by another of the same name."""
    async with scheduler_world() as here:
        await classes(here)
        for name in ("victim", "waiting"):
            await here.add_pod(name, schedulerName="other", priorityClassName="low")
        before = {name: read_pod(await here.pod(name)) for name in ("victim", "waiting")}
        for name in before:
            await here.admin.delete(PODS, "default", name, DeleteOptions(grace_period_seconds=0))
            await here.add_pod(name, schedulerName="other", priorityClassName="low")
        recorder = EventRecorder(here.admin, "default-scheduler", here.clock)
        preemptor = Preemptor(here.admin, here.clock, Cluster(), recorder, "default-scheduler")
        plan = Preempts("a", (before["victim"],), 0)
        with pytest.raises(ApiError, match="gone"):
            await preemptor.carry_out(before["waiting"], plan)
        alive = read_pod(await here.pod("waiting"))
        await preemptor.carry_out(alive, plan)
        assert (await here.pod("waiting")).status.nominated_node_name == "a"
        victim = await here.pod("victim")
        assert victim.metadata.deletion_timestamp is None
        assert not victim.status.conditions
        reasons = {getattr(event, "reason", "") for event in (await here.admin.list(EVENTS)).items}
        assert "Preempted" not in reasons
