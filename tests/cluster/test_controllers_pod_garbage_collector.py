"""Pods that nobody else removes."""

import asyncio
from typing import Any

import pytest

from controller_world import World, controller_world, manifest, node, pod

NAME = "pod-garbage-collector-controller"
TAINT = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}


def run(story: Any, *more: str) -> None:
    async def main() -> None:
        async with controller_world(NAME, *more) as world:
            await story(world)

    asyncio.run(main())


def test_pods_of_a_node_that_is_gone_are_removed_after_a_while() -> None:
    async def story(world: World) -> None:
        await world.create(node(), pod("p", nodeName="node-1"), pod("other", nodeName="node-2"), node("node-2"))
        await world.delete("nodes", "node-1")
        await world.settle(30)
        assert await world.get("pods", "p") is not None, "the node may come back"
        await world.settle(30)
        assert await world.get("pods", "p") is None
        assert await world.get("pods", "other") is not None
        assert world.metric("pod_gc_collector_force_delete_pods_total", namespace="default", reason="orphaned") == 1

    run(story)


def test_pods_of_a_node_that_comes_back_stay() -> None:
    async def story(world: World) -> None:
        await world.create(node(), pod("p", nodeName="node-1"))
        await world.delete("nodes", "node-1")
        await world.settle(30)
        await world.create(node())
        await world.settle(60)
        assert await world.get("pods", "p") is not None

    run(story)


@pytest.mark.req("4381-142")
def test_terminating_pods_of_a_node_out_of_service_are_removed_and_release_their_devices() -> None:
    async def story(world: World) -> None:
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

    run(story, "resourceclaim-controller")


def test_a_ready_node_is_in_service_whatever_its_taints() -> None:
    async def story(world: World) -> None:
        await world.create(node(), pod("p", nodeName="node-1"))
        await world.patch(
            "nodes", "node-1", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, "status"
        )
        await world.patch("nodes", "node-1", {"spec": {"taints": [TAINT]}})
        await world.delete("pods", "p")
        await world.settle(60)
        assert await world.get("pods", "p") is not None

    run(story)
