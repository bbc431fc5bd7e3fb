"""Pods that nobody else removes."""

import contextlib
from collections.abc import AsyncIterator

import pytest

from controller_world import World, controller_world, manifest, node, pod

NAME = "pod-garbage-collector-controller"
TAINT = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}


@contextlib.asynccontextmanager
async def pod_garbage_collector_world(*more: str) -> AsyncIterator[World]:
    async with controller_world(NAME, *more) as world:
        yield world


async def test_pods_of_a_node_that_is_gone_are_removed_after_a_while() -> None:
    async with pod_garbage_collector_world() as world:
        await world.create(node(), pod("p", nodeName="node-1"), pod("other", nodeName="node-2"), node("node-2"))
        await world.delete("nodes", "node-1")
        await world.settle(30)
        assert await world.get("pods", "p") is not None, "the node may come back"
        await world.settle(30)
        assert await world.get("pods", "p") is None
        assert await world.get("pods", "other") is not None
        assert world.metric("pod_gc_collector_force_delete_pods_total", namespace="default", reason="orphaned") == 1


async def test_pods_of_a_node_that_comes_back_stay() -> None:
    async with pod_garbage_collector_world() as world:
        await world.create(node(), pod("p", nodeName="node-1"))
        await world.delete("nodes", "node-1")
        await world.settle(30)
        await world.create(node())
        await world.settle(60)
        assert await world.get("pods", "p") is not None


@pytest.mark.req("4381-142")
async def test_terminating_pods_of_a_node_out_of_service_are_removed_and_release_their_devices() -> None:
    async with pod_garbage_collector_world("resourceclaim-controller") as world:
        devices = {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}
        claims = [{"name": "dev", "resourceClaimName": "c"}]
        await world.create(node(), manifest("resource.k8s.io/v1", "ResourceClaim", "c", spec={"devices": devices}))
        user = await world.create(pod("p", nodeName="node-1", resourceClaims=claims), pod("kept", nodeName="node-1"))
        user = await world.get("pods", "p")
        result = {"request": "r", "driver": "gpu.example.com", "pool": "p", "device": "d"}
        await world.patch(
            "resourceclaims", "c", {"metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]}}
        )
        consumers = [{"resource": "pods", "name": "p", "uid": user.metadata.uid}]
        status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": consumers}
        await world.patch("resourceclaims", "c", {"status": status}, "status")
        await world.delete("pods", "p")
        await world.settle(60)
        assert await world.get("pods", "p") is not None, "its node has not confirmed that it stopped"
        await world.patch("nodes", "node-1", {"spec": {"taints": [TAINT]}})
        await world.settle()
        assert await world.get("pods", "p") is None
        assert await world.get("pods", "kept") is not None
        assert (await world.get("resourceclaims", "c")).status.allocation is None


async def test_a_ready_node_is_in_service_whatever_its_taints() -> None:
    async with pod_garbage_collector_world() as world:
        await world.create(node(), pod("p", nodeName="node-1"))
        await world.patch(
            "nodes", "node-1", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, "status"
        )
        await world.patch("nodes", "node-1", {"spec": {"taints": [TAINT]}})
        await world.delete("pods", "p")
        await world.settle(60)
        assert await world.get("pods", "p") is not None
