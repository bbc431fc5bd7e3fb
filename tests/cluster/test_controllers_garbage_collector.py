"""What owners leave behind: the garbage collector on a real server."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from controller_world import Manifest, World, controller_world, manifest, node, pod
from patience import eventually_async


@contextlib.asynccontextmanager
async def garbage_collector_world(*more: str) -> AsyncIterator[World]:
    async with controller_world("garbage-collector-controller", *more) as world:
        await world.settle()
        yield world


def config(name: str, *owners: Any, namespace: str = "default", blocks: bool = False, **meta: Any) -> Manifest:
    references = [
        {
            "apiVersion": owner.api_version,
            "kind": owner.kind,
            "name": owner.metadata.name,
            "uid": owner.metadata.uid,
            "blockOwnerDeletion": blocks,
        }
        for owner in owners
    ]
    return manifest("v1", "ConfigMap", name, namespace, meta={"ownerReferences": references, **meta})


async def names(world: World) -> list[str]:
    return [one.metadata.name for one in await world.objects("configmaps")]


@pytest.mark.req("4381-133")
async def test_dependents_follow_their_owner() -> None:
    async with garbage_collector_world() as world:
        owner = await world.create(config("owner"))
        child = await world.create(config("child", owner))
        await world.create(config("grandchild", child))
        await world.settle()
        assert len(await names(world)) == 3
        await world.delete("configmaps", "owner")
        await world.settle()
        assert await names(world) == []


@pytest.mark.req("4381-133")
async def test_a_claim_goes_with_its_pod() -> None:
    async with garbage_collector_world("resourceclaim-controller") as world:
        devices = {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}
        template = manifest("resource.k8s.io/v1", "ResourceClaimTemplate", "t", spec={"spec": {"devices": devices}})
        claims = [{"name": "dev", "resourceClaimTemplateName": "t"}]
        await world.create(template, pod("p", resourceClaims=claims))
        await world.settle()
        assert len(await world.objects("resourceclaims")) == 1
        await world.delete("pods", "p")
        await world.settle()
        assert await world.objects("resourceclaims") == []


@pytest.mark.req("4381-181")
async def test_the_slices_of_a_node_go_with_it() -> None:
    async with garbage_collector_world() as world:
        machine = await world.create(node())
        owner = {"apiVersion": "v1", "kind": "Node", "name": "node-1", "uid": machine.metadata.uid, "controller": True}
        pool = {"name": "node-1", "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": "gpu.example.com", "nodeName": "node-1", "pool": pool, "devices": [{"name": "d"}]}
        await world.create(
            manifest("resource.k8s.io/v1", "ResourceSlice", "s", meta={"ownerReferences": [owner]}, spec=spec)
        )
        await world.settle()
        assert len(await world.objects("resourceslices")) == 1
        await world.delete("nodes", "node-1")
        await world.settle()
        assert await world.objects("resourceslices") == []


async def test_one_owner_that_is_left_is_enough() -> None:
    async with garbage_collector_world() as world:
        first, second = await world.create(config("first")), await world.create(config("second"))
        await world.create(config("child", first, second))
        await world.delete("configmaps", "first")
        await world.settle()
        child = await world.get("configmaps", "child")
        assert [one.name for one in child.metadata.owner_references] == ["second"]
        await world.delete("configmaps", "second")
        await world.settle()
        assert await names(world) == []


async def test_another_object_of_the_owners_name_is_not_the_owner() -> None:
    async with garbage_collector_world() as world:
        first = await world.create(config("owner"))
        await world.create(config("child", first))
        await world.settle()
        await world.delete("configmaps", "owner")
        await world.create(config("owner"))
        await world.settle()
        assert await names(world) == ["owner"]


async def test_an_object_that_is_created_too_late_goes_too() -> None:
    async with garbage_collector_world() as world:
        owner = await world.create(config("owner"))
        await world.delete("configmaps", "owner")
        await world.settle()
        await world.create(config("child", owner))
        await world.settle()
        assert await names(world) == []


async def test_orphans_stay() -> None:
    async with garbage_collector_world() as world:
        owner = await world.create(config("owner"))
        await world.create(config("child", owner))
        await world.settle()
        await world.delete("configmaps", "owner", propagation_policy="Orphan")
        await world.settle()
        assert await names(world) == ["child"]
        assert (await world.get("configmaps", "child")).metadata.owner_references == ()


async def test_in_the_foreground_the_owner_goes_last() -> None:
    async with garbage_collector_world() as world:
        owner = await world.create(config("owner"))
        await world.create(config("slow", owner, blocks=True, finalizers=["example.com/slow"]))
        await world.create(config("quick", owner, blocks=True))
        await world.create(config("unimportant", owner, finalizers=["example.com/never"]))
        await world.settle()
        await world.delete("configmaps", "owner", propagation_policy="Foreground")
        await world.settle()
        assert await names(world) == ["owner", "slow", "unimportant"]
        await world.patch("configmaps", "slow", {"metadata": {"finalizers": None}})
        await world.settle()
        assert await names(world) == ["unimportant"]
        assert (await world.get("configmaps", "unimportant")).metadata.deletion_timestamp is not None


async def test_nobody_of_another_namespace_keeps_an_owner_or_says_that_it_is_gone() -> None:
    """Whoever has heard of a uid may write it into references of their own objects."""
    async with garbage_collector_world() as world:
        await world.create(manifest("v1", "Namespace", "other"))
        owner = await world.create(config("owner"))
        leech = config("leech", owner, namespace="other", blocks=True, finalizers=["example.com/never"])
        await world.create(leech)
        await world.settle()
        collector: Any = world.manager.controllers["garbage-collector-controller"]
        late = await world.create(config("late", owner))
        assert {place.namespace for place in collector._absent} == {"other"}
        assert not any(collector._is_absent(late, one) for one in late.metadata.owner_references)
        await world.delete("configmaps", "owner", propagation_policy="Foreground")
        await world.settle()
        assert [one for one in await names(world) if one != "leech"] == []


async def test_the_foreground_reaches_grandchildren() -> None:
    async with garbage_collector_world() as world:
        owner = await world.create(config("owner"))
        child = await world.create(config("child", owner, blocks=True))
        await world.create(config("grandchild", child, blocks=True, finalizers=["example.com/slow"]))
        await world.settle()
        await world.delete("configmaps", "owner", propagation_policy="Foreground")
        await world.settle()
        assert await names(world) == ["child", "grandchild", "owner"]
        await world.patch("configmaps", "grandchild", {"metadata": {"finalizers": None}})
        await world.settle()
        assert await names(world) == []


async def test_a_collector_that_was_down_finds_what_it_missed() -> None:
    async with controller_world() as world:
        owner = await world.create(config("owner"))
        await world.create(config("child", owner), config("free"))
        await world.delete("configmaps", "owner")
        async with controller_world("garbage-collector-controller", server=world.server) as again:
            await again.settle()
            assert await names(again) == ["free"]


async def test_owners_of_unknown_kinds_are_never_thought_gone() -> None:
    async with garbage_collector_world() as world:
        reference = {"apiVersion": "example.com/v1", "kind": "Robot", "name": "r", "uid": "u"}
        await world.create(manifest("v1", "ConfigMap", "child", meta={"ownerReferences": [reference]}))
        await world.settle()
        assert await names(world) == ["child"]


async def test_an_owner_in_no_namespace_cannot_be_namespaced() -> None:
    async with garbage_collector_world() as world:
        owner = await world.create(config("owner"))
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.metadata.uid}
        await world.create(manifest("v1", "Node", "n", meta={"ownerReferences": [reference]}))
        await world.settle()
        assert await world.get("nodes", "n") is not None
        assert [reason for reason, _ in await world.events("n")] == ["OwnerRefInvalidNamespace"]


async def owned_by(world: World, name: str, *owners: Any) -> None:
    """Gives an object owners after all of them exist, each of which it blocks."""
    references = config(name, *owners, blocks=True)["metadata"]["ownerReferences"]
    await world.patch("configmaps", name, {"metadata": {"ownerReferences": references}})


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("deleted", ["one", "all"])
async def test_objects_that_own_each_other_in_a_circle_go(size: int, deleted: str) -> None:
    async with garbage_collector_world() as world:
        circle = [await world.create(config(f"c{number}")) for number in range(size)]
        for number, obj in enumerate(circle):
            await owned_by(world, obj.metadata.name, circle[number - 1])
        await world.create(config("bystander"))
        await world.settle()
        for obj in circle if deleted == "all" else circle[:1]:
            await world.delete("configmaps", obj.metadata.name, propagation_policy="Foreground")
        for _ in range(3 * size):
            await world.settle(1)
        assert await names(world) == ["bystander"]


async def test_a_tree_with_a_circle_in_it_goes() -> None:
    async with garbage_collector_world() as world:
        root = await world.create(config("root"))
        one = await world.create(config("one"))
        two = await world.create(config("two"))
        await owned_by(world, "one", root, two)
        await owned_by(world, "two", one)
        await world.create(config("leaf", two, blocks=True))
        await world.settle()
        await world.delete("configmaps", "one", propagation_policy="Foreground")
        for _ in range(10):
            await world.settle(1)
        assert await names(world) == ["root"]


@pytest.mark.parametrize("kind", ["ReplicationController", "Job"])
async def test_what_the_oldest_kinds_own_stays_if_nobody_says_otherwise(kind: str) -> None:
    async with garbage_collector_world() as world:
        containers = [{"name": "c", "image": "i"}]
        spec = {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers}}}
        if kind == "Job":
            spec["template"]["spec"] = {"containers": containers, "restartPolicy": "Never"}
        plural = f"{kind.lower()}s"
        await world.create(manifest("batch/v1" if kind == "Job" else "v1", kind, "owner", "default", spec=spec))
        await world.create(config("owned", await world.get(plural, "owner")))
        await world.delete(plural, "owner")
        await world.settle(5)
        assert await world.get(plural, "owner") is None
        left = await world.get("configmaps", "owned")
        assert left is not None
        assert left.metadata.owner_references == ()


async def test_an_owner_that_never_was_is_not_remembered_by_a_uid_of_any_length() -> None:
    async with garbage_collector_world() as world:
        for number, uid in enumerate(("0" * 36, "x" * 100_000)):
            owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": uid}
            await world.create(manifest("v1", "ConfigMap", f"c{number}", meta={"ownerReferences": [owner]}))

        async def are_gone() -> bool:
            await world.settle()
            return await names(world) == []

        await eventually_async(
            are_gone, "objects of an owner that never was stayed"
        )  # large ones are read beside the loop
        collector: Any = world.manager.controllers["garbage-collector-controller"]
        assert {len(place.uid) for place in collector._absent} == {36}
