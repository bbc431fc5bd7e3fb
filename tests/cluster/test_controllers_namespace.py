"""Deleting a namespace: everything in it goes, pods first, and then the namespace."""

from controller_world import controller_world, manifest, pod
from dray.api.generated.core import Namespace


async def test_a_namespace_is_emptied_and_goes() -> None:
    async with controller_world("namespace-controller") as world:
        await world.create(
            manifest("v1", "Namespace", "doomed"),
            manifest("v1", "ConfigMap", "c", "doomed"),
            manifest("resource.k8s.io/v1", "ResourceClaim", "claim", "doomed", spec={"devices": {}}),
            pod("p", namespace="doomed"),
            manifest("v1", "ConfigMap", "elsewhere"),
        )
        await world.delete("namespaces", "doomed")
        await world.settle(5)
        assert await world.get("namespaces", "doomed") is None
        assert await world.objects("configmaps", "doomed") == []
        assert await world.get("configmaps", "elsewhere") is not None


async def test_pods_stop_before_what_they_need_is_taken_away() -> None:
    async with controller_world("namespace-controller") as world:
        running = pod("p", namespace="doomed", nodeName="node-1")
        await world.create(manifest("v1", "Namespace", "doomed"), running)
        await world.create(manifest("v1", "ConfigMap", "needed", "doomed"))
        await world.delete("namespaces", "doomed")
        await world.settle(5)
        stopping = await world.get("pods", "p", "doomed")
        assert stopping.metadata.deletion_timestamp is not None
        assert await world.get("configmaps", "needed", "doomed") is not None
        await world.delete("pods", "p", "doomed", grace_period_seconds=0)
        await world.settle(5)
        assert await world.get("namespaces", "doomed") is None


async def test_what_is_left_is_told() -> None:
    async with controller_world("namespace-controller") as world:
        held = {"finalizers": ["example.com/held"]}
        await world.create(manifest("v1", "Namespace", "doomed"))
        await world.create(manifest("v1", "ConfigMap", "held", "doomed", meta=held))
        await world.delete("namespaces", "doomed")
        await world.settle(5)
        left = await world.get("namespaces", "doomed")
        assert isinstance(left, Namespace)
        said = {one.type: (one.status, one.message) for one in left.status.conditions}
        assert said["NamespaceContentRemaining"][0] == "True"
        assert "configmaps" in said["NamespaceContentRemaining"][1]
        assert "example.com/held in 1" in said["NamespaceFinalizersRemaining"][1]
        before = world.server.store.revision
        await world.settle(5)
        assert world.server.store.revision == before, "the same thing must not be said again and again"
        await world.patch("configmaps", "held", {"metadata": {"finalizers": None}}, namespace="doomed")
        await world.settle(5)
        assert await world.get("namespaces", "doomed") is None
