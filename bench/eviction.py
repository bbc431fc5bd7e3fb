"""Evictions at scale: how even the rate is, how soon the first pod goes, what planning costs.

A rule at 1000 evictions a second hits 20,000 running pods on a real server in this process (durable store, the
controller with its own rights). Rates are read from when pods were seen being deleted, in windows of five seconds.
The limits that the figures should reach are in `LIMITS`; on a busy machine read the CPU seconds.
"""

from __future__ import annotations

import asyncio
import gc
import tempfile
import time
from bisect import bisect_left
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvloop
from bench import tracker as devices
from msgspec.structs import replace

from dray.api.generated.core import Container, Pod, PodSpec
from dray.api.meta import ObjectMeta
from dray.api.references import ObjectName
from dray.api.resource import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceClaim,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimSpec,
    ResourceClaimStatus,
)
from dray.api.times import Time
from dray.controllers import Manager
from dray.controllers.eviction import DeviceTaintEvictionController
from dray.eviction import DevicePlanner, preview
from dray.process import garbage
from dray.reconcile import RealClock
from dray.server.instance import Instance, ServerSettings
from dray.server.security.identity import MASTERS, authenticated
from dray.tracker import Upsert

PODS = 20_000
RATE = 1_000
WINDOW = 5.0
PARALLEL = 64
NAMESPACE = "default"
RESOURCE = "resource.k8s.io/v1"
WHEN = Time("2026-01-01T00:00:00Z")

LIMITS = {
    "rate_lowest_5s": 0.95 * RATE,
    "rate_highest_5s": 1.05 * RATE,
    "first_eviction_ms": 200,
    "cpu_per_eviction_ms": 0.6,
    "planning_share_of_a_core": 0.25,
    "one_more_rule_ms": 50,
    "preview_ms": 1000,
}


def run() -> dict[str, float]:
    """Measures; the names carry the units."""
    results = _planning()
    with tempfile.TemporaryDirectory() as directory:
        results |= uvloop.run(_evicting(Path(directory)))
    return results


def _planning() -> dict[str, float]:
    """The planner alone: 100,000 devices, 100 rules, 20,000 claims; one more rule, and a preview."""
    planner = DevicePlanner()
    for slice_ in devices.slices():
        planner.note(Upsert(slice_))
    for rule in devices.rules():
        planner.note(Upsert(rule))
    for number in range(PODS):
        pod = _pod(number)
        planner.put_pod(replace(pod, metadata=replace(pod.metadata, uid=f"uid-{number}")))
        planner.put_claim(ObjectName(NAMESPACE, pod.metadata.name), _held(number, f"uid-{number}"))
    _plan(planner)
    gc.collect()
    gc.freeze()  # as a server does once it has loaded
    results = {}
    few = DeviceTaintSelector(driver=devices.DRIVER, pool="node-1")
    results["one_more_rule_ms"] = _milliseconds(lambda: _add(planner, "few", few))
    everything = DeviceTaintSelector(driver=devices.DRIVER)
    cpu = time.process_time()
    results["rule_on_all_20000_pods_ms"] = _milliseconds(lambda: _add(planner, "everything", everything))
    results["rule_on_all_20000_pods_cpu_s"] = time.process_time() - cpu
    rule = planner.rules["everything"]
    cpu = time.process_time()
    results["preview_ms"] = _milliseconds(lambda: preview(planner, rule))
    results["preview_cpu_ms"] = (time.process_time() - cpu) * 1000
    assert len(preview(planner, rule).pods) == PODS
    gc.unfreeze()
    return results


def _add(planner: DevicePlanner, name: str, selector: DeviceTaintSelector) -> None:
    planner.note(Upsert(_rule(name, selector)))
    _plan(planner)
    assert planner.take(time.time(), 0.0)


def _plan(planner: DevicePlanner) -> None:
    planner.plan(0.0)
    while not planner.is_current:
        planner.plan(0.0)


async def _evicting(directory: Path) -> dict[str, float]:
    """The whole of it: server, store, informers, controller."""
    instance = Instance(ServerSettings(directory=directory, port=0))
    await instance.start()
    admin = instance.client_of(authenticated("bench", (MASTERS,)))
    manager = Manager(
        instance.local_client("kube-controller-manager"),
        RealClock(),
        wanted=(DeviceTaintEvictionController.name,),
        client_for=instance.local_client,
    )
    try:
        with garbage.loading():
            for slice_ in devices.slices()[: PODS // devices.DEVICES_PER_NODE]:
                await admin.create(_stored(slice_, RESOURCE, "ResourceSlice"))
            await _in_parallel(PODS, lambda number: _use(admin, number))
            running = asyncio.get_running_loop().create_task(manager.run())
            await manager.ready()
        try:
            return await _measure(admin, manager)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    finally:
        await instance.stop()


async def _measure(admin: Any, manager: Manager) -> dict[str, float]:
    controller = manager.controllers[DeviceTaintEvictionController.name]
    assert isinstance(controller, DeviceTaintEvictionController)
    planning = _Meter(controller)
    moments: list[float] = []
    first: list[float] = []
    done = asyncio.Event()

    def on_change(old: Pod | None, new: Pod | None) -> None:
        was = old is not None and old.metadata.deletion_timestamp is not None
        if new is not None and new.metadata.deletion_timestamp is not None and not was:
            moments.append(time.perf_counter())
            if len(moments) == 1:
                first.append(time.process_time())
            if len(moments) == PODS:
                done.set()

    controller._pods.on_change(on_change)
    await asyncio.sleep(2)
    planning.start()
    rule = _rule("rule", DeviceTaintSelector(driver=devices.DRIVER))
    began, cpu = time.perf_counter(), time.process_time()
    await admin.create(_stored(rule, RESOURCE, "DeviceTaintRule"))
    async with asyncio.timeout(300):
        await done.wait()
    seconds, cpu_of_first, cpu = time.perf_counter() - began, first[0] - cpu, time.process_time() - cpu
    return {
        "first_eviction_ms": (moments[0] - began) * 1000,
        "first_eviction_cpu_ms": cpu_of_first * 1000,
        **_rates(moments),
        "evicting_s": seconds,
        "evicting_cpu_s": cpu,
        "cpu_per_eviction_ms": cpu / PODS * 1000,
        "planning_cpu_s": planning.cpu,
        "planning_share_of_a_core": planning.cpu / seconds,
        "longest_plan_ms": planning.longest * 1000,
    }


def _rates(moments: list[float]) -> dict[str, float]:
    """The lowest and highest rate over any window, from the end of the burst until the last pod."""
    moments = moments[10:]
    starts = [moment for moment in moments if moment + WINDOW <= moments[-1]]
    rates = [(bisect_left(moments, start + WINDOW) - bisect_left(moments, start)) / WINDOW for start in starts]
    return {"rate_lowest_5s": min(rates, default=0.0), "rate_highest_5s": max(rates, default=0.0)}


class _Meter:
    """CPU time that a controller spends on planning, in its handlers of events and between them."""

    def __init__(self, controller: DeviceTaintEvictionController) -> None:
        self.cpu = 0.0
        self.longest = 0.0
        planner = controller.planner
        for name in ("note", "put_claim", "put_pod", "plan", "take", "wait"):
            setattr(planner, name, self._timed(getattr(planner, name)))
        planner.departures.evicted = self._timed(planner.departures.evicted)  # type: ignore[method-assign]  # measured

    def start(self) -> None:
        """From now on."""
        self.cpu = self.longest = 0.0

    def _timed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            began = time.thread_time()
            try:
                return call(*args, **kwargs)
            finally:
                spent = time.thread_time() - began
                self.cpu += spent
                self.longest = max(self.longest, spent)

        return timed


async def _use(admin: Any, number: int) -> None:
    pod = await admin.create(_stored(_pod(number), "v1", "Pod"))
    held = _held(number, pod.metadata.uid)
    claim = await admin.create(_stored(replace(held, status=ResourceClaimStatus()), RESOURCE, "ResourceClaim"))
    await admin.update(replace(claim, status=held.status), subresource="status")


async def _in_parallel(count: int, work: Callable[[int], Any]) -> None:
    numbers = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            await work(number)

    await asyncio.gather(*(worker() for _ in range(PARALLEL)))


def _pod(number: int) -> Pod:
    spec = PodSpec(node_name=f"node-{number // devices.DEVICES_PER_NODE}", containers=(_CONTAINER,))
    return Pod(metadata=ObjectMeta(name=f"p{number}", namespace=NAMESPACE), spec=spec)


_CONTAINER = Container(name="main", image="pause")


def _held(number: int, uid: str) -> ResourceClaim:
    node, index = divmod(number, devices.DEVICES_PER_NODE)
    result = DeviceRequestAllocationResult(
        request="gpu", driver=devices.DRIVER, pool=f"node-{node}", device=f"gpu-{index}"
    )
    status = ResourceClaimStatus(
        allocation=AllocationResult(devices=DeviceAllocationResult(results=(result,))),
        reserved_for=(ResourceClaimConsumerReference(resource="pods", name=f"p{number}", uid=uid),),
    )
    return ResourceClaim(metadata=ObjectMeta(name=f"p{number}", namespace=NAMESPACE), spec=_SPEC, status=status)


_SPEC = ResourceClaimSpec(
    devices=DeviceClaim(
        requests=(DeviceRequest(name="gpu", exactly=ExactDeviceRequest(device_class_name="gpu", count=1)),)
    )
)


def _rule(name: str, selector: DeviceTaintSelector) -> DeviceTaintRule:
    taint = DeviceTaint(key="example.com/broken", effect="NoExecute", evictions_per_second=RATE, time_added=WHEN)
    spec = DeviceTaintRuleSpec(device_selector=selector, taint=taint)
    return DeviceTaintRule(metadata=ObjectMeta(name=name, uid=f"uid-{name}"), spec=spec)


def _stored(obj: Any, api_version: str, kind: str) -> Any:
    """An object as it goes to the server, which gives it its uid."""
    return replace(obj, api_version=api_version, kind=kind, metadata=replace(obj.metadata, uid=""))


def _milliseconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


if __name__ == "__main__":
    for name, value in run().items():
        print(f"{name:40} {value:12.3f}  {LIMITS.get(name, '')}")
