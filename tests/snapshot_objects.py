"""Manifests for tests of snapshots, as short as they can be written."""

from __future__ import annotations

from typing import Any

import builders
from builders import DRIVER, V1, V1ALPHA3, Manifest

__all__ = (
    "DRIVER",
    "V1",
    "V1ALPHA3",
    "Manifest",
    "claim",
    "device",
    "device_class",
    "held",
    "node",
    "patch",
    "pod",
    "resource_slice",
    "rule",
)


def device(name: str, numa: int = 0, memory: str = "80Gi", **more: Any) -> Manifest:
    return builders.device(name, {"model": "H100", "numa": numa}, memory=memory, **more)


def resource_slice(node: str, *devices: Manifest, count: int = 1, generation: int = 1) -> Manifest:
    about: Manifest = {"count": count, "generation": generation}
    return builders.resource_slice(f"{node}-slice", *devices, pool=node, nodeName=node, **about)


def device_class(expression: str = f'device.driver == "{DRIVER}"', name: str = "gpu") -> Manifest:
    return builders.device_class(name, expression)


def claim(
    name: str,
    count: int = 1,
    selector: str | None = None,
    match: str | None = None,
    device_class_name: str = "gpu",
    tolerations: list[Manifest] | None = None,
) -> Manifest:
    selectors = None if selector is None else builders.cel(selector)
    exactly = builders.given({"count": count, "selectors": selectors, "tolerations": tolerations})
    wanted = builders.request("gpu", deviceClassName=device_class_name, **exactly)
    more: Manifest = {} if match is None else {"constraints": [{"matchAttribute": f"{DRIVER}/{match}"}]}
    return builders.claim(name, wanted, namespace="ml", **more)


def held(made: Manifest, node: str, *devices: str, pods: tuple[str, ...] = ()) -> Manifest:
    """A claim with an allocation on a node, reserved for pods."""
    tolerations = made["spec"]["devices"]["requests"][0]["exactly"].get("tolerations")
    kept = {"tolerations": tolerations} if tolerations else {}
    users = {name: f"uid-{name}" for name in pods}
    return {**made, "status": builders.allocated(*devices, pool=node, request="gpu", users=users, **kept)}


def pod(name: str, node: str = "node-1", **status: Any) -> Manifest:
    meta = {"uid": f"uid-{name}"}
    return builders.pod(name, namespace="ml", meta=meta, status=status, nodeName=node)


def rule(name: str, effect: str = "NoExecute", rate: int | None = None, **selector: Any) -> Manifest:
    more = {"timeAdded": "2026-06-01T12:00:00Z", "evictionsPerSecond": rate}
    tainted = builders.taint("example.com/bad", effect, **more)
    return builders.taint_rule(name, selector, tainted, api_version=V1ALPHA3)


def patch(name: str, attributes: Manifest, **criteria: Any) -> Manifest:
    return builders.slice_patch(name, attributes, **criteria)


def node(name: str, **fields: Any) -> Manifest:
    """A node that says that it is ready, with whatever `spec` and `labels` are given."""
    resources = fields.get("allocatable", {"cpu": "8", "memory": "32Gi", "pods": "110"})
    ready = {"conditions": [{"type": "Ready", "status": fields.get("ready", "True")}]}
    labels = fields.get("labels", {})
    return builders.node(name, labels=labels, resources=resources, status=ready, **fields.get("spec", {}))
