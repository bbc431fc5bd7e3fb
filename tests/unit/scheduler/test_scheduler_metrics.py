"""The scheduler's numbers and its log, against a real (in-memory) server."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from dray.api.generated.core import Pod
from dray.api.meta import ObjectMeta
from dray.api.registry import by_kind
from dray.reconcile import VirtualClock
from dray.scheduler.metrics import SchedulerMetrics
from dray.scheduler.queue import SchedulingQueue
from dray.scheduler.scheduler import Scheduler
from dray.scheduling.pod_info import read_pod
from dray.scheduling.reasons import ClaimNotFound, ClaimsUnjudgeable, Gated, PodReason
from dray.scheduling.refusal import Refused
from local_server import LocalServer, local_server, typed
from scale_up_objects import node, template, waiting
from snapshot_objects import Manifest, claim, device, device_class, resource_slice

PODS = by_kind("v1", "Pod")
PLUGINS = ("DynamicResources", "NodeResourcesFit", "SchedulingGates")
POINTS = ["PreEnqueue", "PreFilter", "Filter", "Reserve", "PreBind", "Bind"]


async def tried(*objects: Manifest, verbosity: int = 0) -> CollectorRegistry:
    """The numbers after everything was tried."""
    registry = CollectorRegistry()
    async with local_server() as server:
        metrics = SchedulerMetrics(registry, "default-scheduler")
        scheduler = Scheduler(server.component("kube-scheduler"), server.clock, metrics=metrics, verbosity=verbosity)
        task = asyncio.get_running_loop().create_task(scheduler.run())
        await _create(server, objects)
        await server.clock.advance(0.5, turns=200)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    return registry


async def _create(server: LocalServer, objects: tuple[Manifest, ...]) -> None:
    admin = server.client()
    await admin.create(typed({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}}))
    for obj in objects:
        made: Any = await admin.create(typed(obj))
        if obj["kind"] == "Node":
            await admin.patch(by_kind("v1", "Node"), "", made.metadata.name, {"spec": {"taints": None}})
            await admin.patch(
                by_kind("v1", "Node"), "", made.metadata.name, {"status": obj["status"]}, subresource="status"
            )


def cluster() -> list[Manifest]:
    return [device_class(), node("node-1"), resource_slice("node-1", device("gpu-0"))]


def value(registry: CollectorRegistry, name: str, **labels: str) -> float:
    return registry.get_sample_value(name, labels) or 0.0


@pytest.mark.req("4381-195", "4381-196", "4381-197", "4381-258")
async def test_pending_and_unschedulable_pods_attempts_and_durations() -> None:
    pods = [waiting("first", claim="a"), waiting("second", claim="b"), waiting("large", cpu=99)]
    registry = await tried(
        *cluster(), claim("a"), claim("b"), *pods, waiting("gated", schedulingGates=[{"name": "wait"}])
    )
    profile = {"profile": "default-scheduler"}
    assert value(registry, "scheduler_schedule_attempts_total", result="scheduled", **profile) == 1
    assert value(registry, "scheduler_schedule_attempts_total", result="unschedulable", **profile) >= 3
    assert value(registry, "scheduler_pending_pods", queue="unschedulable") == 2
    assert value(registry, "scheduler_pending_pods", queue="gated") == 1
    assert value(registry, "scheduler_pending_pods", queue="active") == 0
    assert value(registry, "scheduler_unschedulable_pods", plugin="DynamicResources", **profile) == 1
    assert value(registry, "scheduler_unschedulable_pods", plugin="NodeResourcesFit", **profile) == 1
    for point in POINTS:
        labels = {"extension_point": point, "status": "Success"}
        name = "scheduler_framework_extension_point_duration_seconds_count"
        assert value(registry, name, **labels, **profile) >= 1, point
        name = "scheduler_plugin_execution_duration_seconds_count"
        assert value(registry, name, plugin="DynamicResources", **labels) >= 1, point
    name = "scheduler_scheduling_attempt_duration_seconds_count"
    assert value(registry, name, result="scheduled", **profile) == 1


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2), st.integers(0, 2))
def test_numbers_of_pods_are_what_their_manifests_say(devices: int, wanting: int, large: int, gated: int) -> None:
    gate = [{"name": "wait"}]
    objects = [
        device_class(),
        node("node-1"),
        resource_slice("node-1", *(device(f"gpu-{one}") for one in range(devices))),
    ]
    for one in range(wanting):
        objects += [claim(f"claim-{one}"), waiting(f"wants-{one}", claim=f"claim-{one}")]
    objects += [waiting(f"large-{one}", cpu=99) for one in range(large)]
    objects += [waiting(f"gated-{one}", schedulingGates=gate) for one in range(gated)]
    registry = asyncio.run(tried(*objects))
    placed, profile = min(devices, wanting), {"profile": "default-scheduler"}
    queues = ("active", "backoff", "unschedulable")
    found = sum(value(registry, "scheduler_pending_pods", queue=each) for each in queues)
    assert found == wanting - placed + large
    assert value(registry, "scheduler_pending_pods", queue="gated") == gated
    assert value(registry, "scheduler_schedule_attempts_total", result="scheduled", **profile) == placed
    kept = {plugin: value(registry, "scheduler_unschedulable_pods", plugin=plugin, **profile) for plugin in PLUGINS}
    assert kept == dict(zip(PLUGINS, (wanting - placed, large, gated), strict=True))


async def test_every_pod_is_counted_in_one_queue() -> None:
    registry = CollectorRegistry()
    metrics = SchedulerMetrics(registry, "default-scheduler")
    queue = SchedulingQueue(VirtualClock())
    metrics.follow(queue)
    refusals: dict[str, PodReason] = {
        "error": ClaimsUnjudgeable("CEL"),
        "gated": Gated(),
        "waits": ClaimNotFound("c"),
    }
    for name in ("active", "taken", *refusals):
        queue.put(read_pod(Pod(metadata=ObjectMeta(name=name, namespace="ml"))), changed=False)
    for info in [await queue.pop() for _ in range(5)]:
        name = info.name.name
        if name in refusals:
            refused = Refused(refusals[name])
            queue.refuse(info.name, refused.causes)
            metrics.refused(info.name, refused)
    queues = ("active", "backoff", "unschedulable", "gated")
    found = {each: value(registry, "scheduler_pending_pods", queue=each) for each in queues}
    queue.close()
    assert found == {"active": 2, "backoff": 1, "unschedulable": 1, "gated": 1}


@pytest.mark.req("4381-202", "4381-222")
async def test_the_log_has_the_steps_in_the_order_of_the_framework(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "dray.scheduler"):
        await tried(*cluster(), claim("a"), waiting("first", claim="a"), verbosity=5)
    lines = [record.getMessage().partition(":")[0] for record in caplog.records]
    assert lines == ["attempting to schedule pod ml/first", *POINTS, "pod ml/first"]
    caplog.clear()
    with caplog.at_level(logging.INFO, "dray.scheduler"):
        await tried(*cluster(), claim("a", count=2), waiting("first", claim="a"), verbosity=5)
    lines = [record.getMessage().partition(":")[0] for record in caplog.records]
    assert lines[:5] == ["attempting to schedule pod ml/first", "PreEnqueue", "PreFilter", "Filter", "PostFilter"]


@pytest.mark.req("4381-222")
async def test_less_is_logged_at_lower_verbosity(caplog: pytest.LogCaptureFixture) -> None:
    objects = [*cluster(), template("one"), claim("a"), waiting("first", claim="a")]
    with caplog.at_level(logging.INFO, "dray.scheduler"):
        await tried(*objects, verbosity=4)
    assert [record.getMessage() for record in caplog.records] == [
        "attempting to schedule pod ml/first",
        "pod ml/first: bound to node-1",
    ]
    caplog.clear()
    with caplog.at_level(logging.INFO, "dray.scheduler"):
        await tried(*objects, verbosity=3)
    assert not caplog.records


def test_of_very_many_attempts_some_are_looked_at_closely() -> None:
    metrics = SchedulerMetrics(CollectorRegistry(), "default-scheduler")
    assert sum(metrics.wants_trace(number / 10_000) for number in range(50_000)) == pytest.approx(600, abs=10)
