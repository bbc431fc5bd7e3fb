"""Node groups and waiting pods for tests of scaling up, as short as they can be written."""

from __future__ import annotations

from typing import Any

import builders
from dray.scale_up import NodeGroup, ScaleUpPlan, load_groups, plan
from dray.snapshot import Snapshot, load
from dray.snapshot.files import read
from snapshot_objects import Manifest, device, resource_slice


def node(name: str, cpu: int = 8, **labels: str) -> Manifest:
    amounts = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
    return builders.node(name, labels={"kubernetes.io/hostname": name, **labels}, resources=amounts)


def group(name: str, *, devices: int = 0, cpu: int = 8, limit: int = 100, price: float = 1.0, **spec: Any) -> Manifest:
    """A group of nodes with so many devices each; `spec` replaces the template."""
    made: Manifest = {"maxNodes": limit, "price": price, **spec}
    if not spec:
        slices = [resource_slice(name, *(device(f"gpu-{number}") for number in range(devices)))] if devices else []
        made["template"] = [node(name, cpu), *slices]
    return {"apiVersion": "dray.dev/v1", "kind": "NodeGroup", "metadata": {"name": name}, "spec": made}


def template(name: str, count: int = 1) -> Manifest:
    """A claim template for so many devices."""
    return builders.claim_template(name, builders.request("gpu", count=count), namespace="ml")


def waiting(name: str, *, cpu: int = 0, claim_template: str = "", claim: str = "", **spec: Any) -> Manifest:
    """A pod without a node."""
    used = [builders.pod_claim("gpu", claim=claim, template=claim_template)] if claim or claim_template else []
    return builders.pod(name, namespace="ml", cpu=str(cpu) if cpu else "", claims=used, **spec)


def groups_of(snapshot: Snapshot, *manifests: Manifest) -> tuple[NodeGroup, ...]:
    return load_groups(read(manifests), snapshot)


def plan_for(objects: list[Manifest], *groups: Manifest, max_nodes: int = 1000) -> ScaleUpPlan:
    """The plan for a cluster of these objects, and these groups."""
    snapshot = load(*objects)
    return plan(snapshot, groups_of(snapshot, *groups), max_nodes=max_nodes)


def added(answer: ScaleUpPlan) -> dict[str, int]:
    """How many nodes of which group, those of which there are none left out."""
    return {one.name: one.nodes for one in answer.groups if one.nodes}
