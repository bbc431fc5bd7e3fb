"""Custom objects are objects: they own and are owned, quotas count them, and they go with their namespace."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from controller_world import World, controller_world, manifest
from dray.api.custom import CustomObject
from dray.api.meta import ObjectMeta, OwnerReference
from dray.api.registry import Kind
from dray.api.status import ApiError
from patience import eventually_async

WIDGETS = Kind("example.com", "Widget", "widgets", "widget", True, ("v1",))
DEFINITION = manifest(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "widgets.example.com",
    spec={
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
)


@contextlib.asynccontextmanager
async def custom_world() -> AsyncIterator[World]:
    wanted = ("garbage-collector-controller", "resourcequota-controller", "namespace-controller")
    async with controller_world(*wanted) as running:
        await running.create(DEFINITION)
        await running.settle()
        yield running


async def create(world: World, name: str, namespace: str = "default", owner: Any = None) -> Any:
    references: tuple[OwnerReference, ...] = ()
    if owner is not None:
        meta = owner.metadata
        reference = OwnerReference(api_version=owner.api_version, kind=owner.kind, name=meta.name, uid=meta.uid)
        references = (reference,)
    meta = ObjectMeta(name=name, namespace=namespace, owner_references=references)
    return await world.admin.create(CustomObject(kind="Widget", api_version="example.com/v1", metadata=meta))


async def names(world: World, namespace: str = "default") -> list[str]:
    return [obj.metadata.name for obj in (await world.admin.list(WIDGETS, namespace)).items]


async def test_what_a_custom_object_owns_goes_with_it() -> None:
    async with custom_world() as world:
        owner = await create(world, "owner")
        await create(world, "owned", owner=owner)
        reference = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "owner", "uid": owner.metadata.uid}
        await world.create(manifest("v1", "ConfigMap", "owned", meta={"ownerReferences": [reference]}))
        await world.settle()
        assert await names(world) == ["owned", "owner"]
        await world.admin.delete(WIDGETS, "default", "owner")
        await world.settle(3)
        assert await names(world) == []
        assert await world.get("configmaps", "owned") is None


async def test_a_custom_object_goes_with_its_owner() -> None:
    async with custom_world() as world:
        owner = await world.create(manifest("v1", "ConfigMap", "owner"))
        await create(world, "owned", owner=owner)
        await world.delete("configmaps", "owner")
        await world.settle(3)
        assert await names(world) == []


async def test_quotas_count_custom_objects() -> None:
    async with custom_world() as world:
        await world.create(manifest("v1", "ResourceQuota", "few", spec={"hard": {"count/widgets.example.com": "1"}}))
        await world.settle()
        await create(world, "one")
        with pytest.raises(ApiError, match="exceeded quota: few"):
            await create(world, "two")
        await world.admin.delete(WIDGETS, "default", "one")
        await world.settle()
        await create(world, "two")


async def test_custom_objects_go_with_their_namespace() -> None:
    async with custom_world() as world:
        await world.create(manifest("v1", "Namespace", "short"))
        await create(world, "one", "short")
        await world.delete("namespaces", "short")
        await world.settle(5)
        assert await world.get("namespaces", "short") is None
        assert await names(world, "") == []


async def test_a_kind_that_is_gone_is_followed_no_more() -> None:
    async with custom_world() as world:
        kind = next(one.kind for one in world.manager.informers if one.kind.plural == "widgets")
        await create(world, "one")
        await world.patch("customresourcedefinitions", "widgets.example.com", {"metadata": {"finalizers": None}})
        await world.delete("customresourcedefinitions", "widgets.example.com")

        async def is_gone() -> bool:
            await world.settle()
            return kind not in [one.kind for one in world.manager.informers]

        await eventually_async(is_gone)
        assert world.manager.health()["garbage-collector-controller"] == ""
