"""How long validation takes: a full ResourceSlice, and a Pod from bytes to verdict. Run by `make bench`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from dray import validation
from dray.api import codec
from dray.api.generated.core import Pod
from dray.api.meta import ObjectMeta
from dray.api.quantity import Quantity
from dray.api.resource import (
    Device,
    DeviceAttribute,
    DeviceCapacity,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from dray.api.times import Time
from dray.validation import Context

NOW = Time("2026-06-01T12:00:00Z")
SLICE_LIMIT_MS = 3.0
POD_LIMIT_US = 150.0

POD = json.dumps(
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "train-0", "namespace": "default", "labels": {"app": "train", "tier": "batch"}},
        "spec": {
            "containers": [
                {
                    "name": "train",
                    "image": "registry.example.com/train:v1.2",
                    "command": ["python", "train.py"],
                    "env": [{"name": "EPOCHS", "value": "10"}],
                    "ports": [{"containerPort": 8080}],
                    "resources": {
                        "requests": {"cpu": "2", "memory": "4Gi"},
                        "limits": {"memory": "8Gi"},
                        "claims": [{"name": "gpu"}],
                    },
                    "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
                },
                {"name": "log", "image": "registry.example.com/log", "resources": {"requests": {"cpu": "100m"}}},
            ],
            "volumes": [{"name": "scratch", "emptyDir": {}}],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
            "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
        },
    }
).encode()


def full_slice() -> ResourceSlice:
    """A slice with as many devices as allowed, 12 attributes and 2 capacities each."""
    devices = tuple(
        Device(
            name=f"gpu-{number}",
            attributes={
                "model": DeviceAttribute(string="H100"),
                "uuid": DeviceAttribute(string=f"GPU-{number:032x}"),
                "driverVersion": DeviceAttribute(version="535.104.5"),
                "index": DeviceAttribute(int_value=number),
                "healthy": DeviceAttribute(bool_value=True),
                "resource.kubernetes.io/pcieRoot": DeviceAttribute(string=f"pci0000:{number:02x}"),
                **{f"extra{index}": DeviceAttribute(int_value=index) for index in range(6)},
            },
            capacity={name: DeviceCapacity(value=Quantity.parse("80Gi")) for name in ("memory", "scratch")},
        )
        for number in range(128)
    )
    return ResourceSlice(
        kind="ResourceSlice",
        api_version="resource.k8s.io/v1",
        metadata=ObjectMeta(name="node-1-gpu.example.com-abc"),
        spec=ResourceSliceSpec(
            driver="gpu.example.com",
            pool=ResourcePool(name="node-1", generation=1, resource_slice_count=1),
            node_name="node-1",
            devices=devices,
        ),
    )


def pod_from_bytes(ctx: Context) -> int:
    """Decode, default, prepare and validate a pod, as a server does for a create."""
    reading = codec.read_json(POD, Pod, find_duplicates=False)
    assert reading.obj is not None
    pod = validation.prepare_for_create(validation.default_object(reading.obj, NOW), ctx)
    return len(validation.validate_create(pod, ctx))


def best(action: Callable[[], Any], repeat: int) -> float:
    """The shortest of several runs, in seconds."""
    found = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        action()
        found = min(found, time.perf_counter() - start)
    return found


def run() -> dict[str, Any]:
    """Measure and return numbers with their limits."""
    ctx = Context(now=NOW)
    devices = full_slice()
    assert validation.validate_create(devices, ctx) == []
    assert pod_from_bytes(ctx) == 0
    slice_ms = best(lambda: validation.validate_create(devices, ctx), 30) * 1e3
    pod_us = best(lambda: pod_from_bytes(ctx), 500) * 1e6
    return {
        "validate_slice_128x12_ms": round(slice_ms, 3),
        "validate_slice_limit_ms": SLICE_LIMIT_MS,
        "pod_decode_default_validate_us": round(pod_us, 1),
        "pod_limit_us": POD_LIMIT_US,
        "ok": slice_ms <= SLICE_LIMIT_MS and pod_us <= POD_LIMIT_US,
    }


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
