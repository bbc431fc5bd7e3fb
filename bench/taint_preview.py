"""The preview of a taint over 20,000 pods on 1,000 nodes, and over the 20 pods of one node."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from dray.api.generated.core import Container, Node, Pod, PodSpec, PodStatus
from dray.api.meta import Object, ObjectMeta
from dray.api.resource import (
    AllocationResult,
    CELDeviceSelector,
    Device,
    DeviceAllocationResult,
    DeviceClaim,
    DeviceClass,
    DeviceClassSpec,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSelector,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from dray.api.times import Time
from dray.cli.live import GARBAGE_AT
from dray.snapshot import Snapshot, from_objects
from dray.snapshot.device_selection import DeviceSelection, resolve
from dray.snapshot.taint_rules import TaintRequest, as_stored, build_rules
from dray.what_if.taint_preview import preview_rules

NODES = 1_000
PODS_PER_NODE = 20
FREE_PER_NODE = 4
DRIVER = "gpu.example.com"
V1 = "resource.k8s.io/v1"
NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
REPEATS = 3


def run() -> dict[str, Any]:
    """Seconds of the best of some rounds, and of CPU, for which a busy machine is no excuse."""
    gc.set_threshold(GARBAGE_AT)  # as the commands do
    snapshot = from_objects(make_cluster())
    snapshot.nodes()
    gc.collect()
    gc.freeze()
    return {
        "pods_20000": measure(snapshot, DeviceSelection(driver=DRIVER)),
        "pods_20": measure(snapshot, DeviceSelection(pool="node-3")),
    }


def measure(snapshot: Snapshot, selection: DeviceSelection) -> dict[str, float]:
    """One preview, from the request to the answer."""
    best = {"seconds": float("inf"), "cpu_seconds": float("inf"), "pods": 0.0}
    for _ in range(REPEATS):
        wall, cpu = time.perf_counter(), time.process_time()
        asked = TaintRequest(selection=selection, key="maintenance", effect="NoExecute", rate=1000)
        rules = as_stored(build_rules(asked, resolve(snapshot, selection)), snapshot, Time.of(NOW))
        found = preview_rules(snapshot, rules, NOW)
        best = {
            "seconds": min(best["seconds"], round(time.perf_counter() - wall, 3)),
            "cpu_seconds": min(best["cpu_seconds"], round(time.process_time() - cpu, 3)),
            "pods": float(len(found.pods)),
        }
    return best


def make_cluster() -> Iterator[Object]:
    """Nodes with devices, most of them held by a claim that a running pod uses."""
    selector = DeviceSelector(cel=CELDeviceSelector(expression=f'device.driver == "{DRIVER}"'))
    spec = DeviceClassSpec(selectors=(selector,))
    yield DeviceClass(kind="DeviceClass", api_version=V1, metadata=ObjectMeta(name="gpu"), spec=spec)
    for number in range(NODES):
        node = f"node-{number}"
        yield Node(kind="Node", api_version="v1", metadata=ObjectMeta(name=node))
        yield _slice(node)
        for index in range(PODS_PER_NODE):
            name = f"train-{number}-{index}"
            yield _claim(name, node, f"gpu-{index}")
            yield _pod(name, node)


def _slice(node: str) -> ResourceSlice:
    devices = tuple(Device(name=f"gpu-{index}") for index in range(PODS_PER_NODE + FREE_PER_NODE))
    pool = ResourcePool(name=node, generation=1, resource_slice_count=1)
    spec = ResourceSliceSpec(driver=DRIVER, node_name=node, pool=pool, devices=devices)
    return ResourceSlice(kind="ResourceSlice", api_version=V1, metadata=ObjectMeta(name=f"{node}-slice"), spec=spec)


def _claim(name: str, node: str, device: str) -> ResourceClaim:
    request = DeviceRequest(
        name="gpu", exactly=ExactDeviceRequest(device_class_name="gpu", allocation_mode="ExactCount", count=1)
    )
    result = DeviceRequestAllocationResult(request="gpu", driver=DRIVER, pool=node, device=device)
    status = ResourceClaimStatus(
        allocation=AllocationResult(devices=DeviceAllocationResult(results=(result,))),
        reserved_for=(ResourceClaimConsumerReference(resource="pods", name=name, uid=f"uid-{name}"),),
    )
    return ResourceClaim(
        kind="ResourceClaim",
        api_version=V1,
        metadata=ObjectMeta(name=name, namespace="ml"),
        spec=ResourceClaimSpec(devices=DeviceClaim(requests=(request,))),
        status=status,
    )


def _pod(name: str, node: str) -> Pod:
    return Pod(
        kind="Pod",
        api_version="v1",
        metadata=ObjectMeta(name=name, namespace="ml", uid=f"uid-{name}", labels={"app": "train"}),
        spec=PodSpec(node_name=node, containers=(Container(name="main", image="busybox"),)),
        status=PodStatus(phase="Running"),
    )


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
