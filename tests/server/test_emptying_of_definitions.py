"""A definition that goes takes its objects along, and nobody else's."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from dray.api.custom import CustomObject
from dray.api.meta import Object, ObjectMeta
from dray.api.registry import Kind
from dray.api.status import ApiError
from dray.custom.kinds import DEFINITIONS
from dray.server.custom.upkeep import LOOK_AGAIN_SECONDS, keep_definitions
from dray.server.local import LocalClient
from dray.server.objects import with_metadata
from local_server import LocalServer, local_server, typed

GROUP = "example.com"
WIDGETS = Kind(GROUP, "Widget", "widgets", "widget", namespaced=True, versions=("v1",))


def definition() -> Object:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    spec = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]}
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return typed({**kind, "metadata": {"name": f"widgets.{GROUP}"}, "spec": spec})


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
