"""Node groups and waiting pods for tests of scaling up, as short as they can be written."""

from __future__ import annotations

from typing import Any

from dray.scale_up import NodeGroup, ScaleUpPlan, load_groups, plan
from dray.snapshot import Snapshot, load
from dray.snapshot.files import read
from snapshot_objects import V1, Manifest, device, resource_slice


def node(name: str, cpu: int = 8, **labels: str) -> Manifest:
    status = {"allocatable": {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}}
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


def group(name: str, *, devices: int = 0, cpu: int = 8, limit: int = 100, price: float = 1.0, **spec: Any) -> Manifest:
    """A group of nodes with so many devices each; `spec` replaces the template."""
    made: Manifest = {"maxNodes": limit, "price": price, **spec}
    if not spec:
        slices = [resource_slice(name, *(device(f"gpu-{number}") for number in range(devices)))] if devices else []
        made["template"] = [node(name, cpu), *slices]
    return {"apiVersion": "dray.dev/v1", "kind": "NodeGroup", "metadata": {"name": name}, "spec": made}


def template(name: str, count: int = 1) -> Manifest:
    """A claim template for so many devices."""
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": count}}]
    spec = {"spec": {"devices": {"requests": requests}}}
    metadata = {"name": name, "namespace": "ml"}
    return {"apiVersion": V1, "kind": "ResourceClaimTemplate", "metadata": metadata, "spec": spec}


def waiting(name: str, *, cpu: int = 0, claim_template: str = "", claim: str = "", **spec: Any) -> Manifest:
    """A pod without a node."""
    container: Manifest = {"name": "main", "image": "image"}
    if cpu:
        container["resources"] = {"requests": {"cpu": str(cpu)}}
    made: Manifest = {"containers": [container], **spec}
    if claim_template:
        made["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": claim_template}]
    if claim:
        made["resourceClaims"] = [{"name": "gpu", "resourceClaimName": claim}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "ml"}, "spec": made}


def groups_of(snapshot: Snapshot, *manifests: Manifest) -> tuple[NodeGroup, ...]:
    return load_groups(read(manifests), snapshot)


def plan_for(objects: list[Manifest], *groups: Manifest, max_nodes: int = 1000) -> ScaleUpPlan:
    """The plan for a cluster of these objects, and these groups."""
    snapshot = load(*objects)
    return plan(snapshot, groups_of(snapshot, *groups), max_nodes=max_nodes)


def added(answer: ScaleUpPlan) -> dict[str, int]:
    """How many nodes of which group, those of which there are none left out."""
    return {one.name: one.nodes for one in answer.groups if one.nodes}
