"""A definition that goes takes its objects along, and nobody else's."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from dray.api.custom import CustomObject
from dray.api.meta import Object, ObjectMeta
from dray.api.registry import Kind, by_kind
from dray.api.status import ApiError
from dray.custom.kinds import DEFINITIONS
from dray.server.custom import upkeep
from dray.server.custom.upkeep import LOOK_AGAIN_SECONDS, keep_definitions
from dray.server.local import LocalClient
from dray.server.objects import with_metadata
from local_server import LocalServer, local_server, typed

GROUP, CLUSTERS = "example.com", "cluster.open-cluster-management.io"
WIDGETS = Kind(GROUP, "Widget", "widgets", "widget", namespaced=True, versions=("v1",))


def definition(of: Kind = WIDGETS) -> Object:
    schema = {"openAPIV3Schema": {"type": "object"}}
    versions = [{"name": of.versions[0], "served": True, "storage": True, "schema": schema}]
    names = {"plural": of.plural, "singular": of.singular, "kind": of.kind, "listKind": f"{of.kind}List"}
    scope = "Namespaced" if of.namespaced else "Cluster"
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    approved = {"api-approved.kubernetes.io": "unapproved, for a test"}
    meta = {"name": f"{of.plural}.{of.group}", "annotations": approved}
    return typed(
        {**kind, "metadata": meta, "spec": {"group": of.group, "scope": scope, "names": names, "versions": versions}}
    )


def widget(name: str, *finalizers: str) -> CustomObject:
    meta = ObjectMeta(name=name, namespace="default", finalizers=finalizers)
    return CustomObject(kind="Widget", api_version=f"{GROUP}/v1", metadata=meta)


@contextlib.asynccontextmanager
async def world() -> AsyncIterator[tuple[LocalServer, LocalClient]]:
    async with local_server(with_roles=False) as server:
        keeping = asyncio.create_task(keep_definitions(server.engine, server.defined_kinds, server.clock))
        try:
            yield server, server.client()
        finally:
            await server.stop()
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)


async def until(done: Callable[[], Awaitable[Any]]) -> Any:
    while not (found := await done()):
        await asyncio.sleep(0)
    return found


async def names_of(admin: LocalClient) -> list[str]:
    return [obj.metadata.name for obj in (await admin.list(WIDGETS)).items]


async def released(admin: LocalClient) -> None:
    """A definition that waits for its objects is let go by hand, as people do who find that it is stuck."""

    async def told() -> Any:
        found: Any = await admin.get(DEFINITIONS, "", f"widgets.{GROUP}")
        return found if any(one.type == "Terminating" for one in found.status.conditions) else None

    await admin.delete(DEFINITIONS, "", f"widgets.{GROUP}")
    await admin.update(with_metadata(await until(told), finalizers=()))


async def test_objects_of_a_definition_that_comes_after_another_stay() -> None:
    async with world() as (server, admin):
        await admin.create(definition())
        await admin.create(widget("held", "example.com/wait"))
        await released(admin)
        await admin.create(definition())
        await admin.create(widget("new"))
        for _ in range(3):
            await server.clock.advance(LOOK_AGAIN_SECONDS)
        assert await names_of(admin) == ["held", "new"]


@pytest.mark.parametrize(
    "kind", [by_kind("resource.k8s.io/v1", "ResourceClaim"), by_kind(f"{CLUSTERS}/v1", "ManagedCluster")]
)
async def test_the_end_of_a_definition_of_a_built_in_kind_is_not_the_end_of_its_objects(kind: Kind) -> None:
    async with world() as (_, admin):
        manifest: dict[str, Any] = {"apiVersion": kind.api_version_of(kind.versions[0]), "kind": kind.kind}
        manifest["metadata"] = {"name": "mine"}
        if kind.namespaced:
            manifest["metadata"]["namespace"] = "default"
            request = {"name": "one", "exactly": {"deviceClassName": "gpu"}}
            manifest["spec"] = {"devices": {"requests": [request]}}
        await admin.create(typed(manifest))
        await admin.create(definition(kind))
        await admin.delete(DEFINITIONS, "", f"{kind.plural}.{kind.group}")

        async def gone() -> bool:
            return not (await admin.list(DEFINITIONS)).items

        await until(gone)
        (found,) = (await admin.list(kind)).items
        assert (found.metadata.name, found.metadata.deletion_timestamp) == ("mine", None)


async def test_a_definition_that_comes_after_another_is_emptied_when_it_goes() -> None:
    async with world() as (server, admin):
        await admin.create(definition())
        await admin.create(widget("held", "example.com/wait"))
        await released(admin)
        await admin.create(definition())
        await admin.create(widget("new"))
        await admin.delete(DEFINITIONS, "", f"widgets.{GROUP}")

        async def only_held() -> bool:
            return await names_of(admin) == ["held"]

        await until(only_held)
        held = await admin.get(WIDGETS, "default", "held")
        await admin.update(with_metadata(held, finalizers=()))

        async def gone() -> bool:
            await server.clock.advance(LOOK_AGAIN_SECONDS)
            try:
                await admin.get(DEFINITIONS, "", f"widgets.{GROUP}")
            except ApiError as error:
                return error.code == 404
            return False

        assert await until(gone)


async def test_others_have_their_turn_though_nothing_can_be_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    async with world() as (server, admin):
        made: Any = await admin.create(definition())
        for number in range(3):
            await admin.create(widget(f"w{number}"))
        turns = 0

        async def refuse(*_: Any) -> None:
            raise ApiError(403, "Forbidden", "a webhook says no")

        async def count() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        monkeypatch.setattr(upkeep, "AT_ONCE", 1)
        monkeypatch.setattr("dray.server.custom.upkeep.deletes.delete", refuse)
        monkeypatch.setattr(upkeep, "_is_going", lambda *_: True)
        others = asyncio.create_task(count())
        assert not await upkeep._delete_all(server.engine, made)
        others.cancel()
        assert turns >= 2
