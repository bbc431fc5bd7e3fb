"""Manifests for tests of snapshots, as short as they can be written."""

from __future__ import annotations

from typing import Any

DRIVER = "gpu.example.com"
V1 = "resource.k8s.io/v1"
V1ALPHA3 = "resource.k8s.io/v1alpha3"

Manifest = dict[str, Any]


def device(name: str, numa: int = 0, memory: str = "80Gi", **more: Any) -> Manifest:
    attributes = {"model": {"string": "H100"}, "numa": {"int": numa}}
    return {"name": name, "attributes": attributes, "capacity": {"memory": {"value": memory}}, **more}


def resource_slice(node: str, *devices: Manifest, count: int = 1, generation: int = 1) -> Manifest:
    pool = {"name": node, "generation": generation, "resourceSliceCount": count}
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": list(devices)}
    return {"apiVersion": V1, "kind": "ResourceSlice", "metadata": {"name": f"{node}-slice"}, "spec": spec}


def device_class(expression: str = f'device.driver == "{DRIVER}"', name: str = "gpu") -> Manifest:
    spec = {"selectors": [{"cel": {"expression": expression}}]}
    return {"apiVersion": V1, "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def claim(
    name: str,
    count: int = 1,
    selector: str | None = None,
    match: str | None = None,
    device_class_name: str = "gpu",
    tolerations: list[Manifest] | None = None,
) -> Manifest:
    exactly: Manifest = {"deviceClassName": device_class_name, "count": count}
    if selector is not None:
        exactly["selectors"] = [{"cel": {"expression": selector}}]
    if tolerations is not None:
        exactly["tolerations"] = tolerations
    devices: Manifest = {"requests": [{"name": "gpu", "exactly": exactly}]}
    if match is not None:
        devices["constraints"] = [{"matchAttribute": f"{DRIVER}/{match}"}]
    metadata = {"name": name, "namespace": "ml"}
    return {"apiVersion": V1, "kind": "ResourceClaim", "metadata": metadata, "spec": {"devices": devices}}


def held(made: Manifest, node: str, *devices: str, pods: tuple[str, ...] = ()) -> Manifest:
    """A claim with an allocation on a node, reserved for pods."""
    tolerations = made["spec"]["devices"]["requests"][0]["exactly"].get("tolerations")
    result = {"request": "gpu", "driver": DRIVER, "pool": node}
    results = [{**result, "device": name, **({"tolerations": tolerations} if tolerations else {})} for name in devices]
    reserved = [{"resource": "pods", "name": pod, "uid": f"uid-{pod}"} for pod in pods]
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": reserved}
    return {**made, "status": status}


def pod(name: str, node: str = "node-1", **status: Any) -> Manifest:
    metadata = {"name": name, "namespace": "ml", "uid": f"uid-{name}"}
    spec = {"nodeName": node, "containers": [{"name": "main", "image": "image"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def rule(name: str, effect: str = "NoExecute", rate: int | None = None, **selector: Any) -> Manifest:
    taint: Manifest = {"key": "example.com/bad", "effect": effect, "timeAdded": "2026-06-01T12:00:00Z"}
    if rate is not None:
        taint["evictionsPerSecond"] = rate
    spec = {"deviceSelector": selector, "taint": taint}
    return {"apiVersion": V1ALPHA3, "kind": "DeviceTaintRule", "metadata": {"name": name}, "spec": spec}


def patch(name: str, attributes: Manifest, **filter_: Any) -> Manifest:
    spec = {"devices": {"filter": filter_, "attributes": attributes}}
    return {"apiVersion": V1ALPHA3, "kind": "ResourceSlicePatch", "metadata": {"name": name}, "spec": spec}


def node(name: str, **fields: Any) -> Manifest:
    """A node that says that it is ready, with whatever `spec` and `labels` are given."""
    metadata = {"name": name, "labels": fields.get("labels", {})}
    amounts = fields.get("allocatable", {"cpu": "8", "memory": "32Gi", "pods": "110"})
    ready = [{"type": "Ready", "status": fields.get("ready", "True")}]
    status = {"capacity": amounts, "allocatable": amounts, "conditions": ready}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": fields.get("spec", {}), "status": status}
