"""Controllers on a server in memory, each with its own rights, on a clock that tests move.

async with controller_world("resourceclaim-controller") as world:
    await world.create(pod("p"))
    await world.settle()
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, cast

from builders import Manifest, manifest, node, pod, typed
from dray.api.generated.core import Event
from dray.api.meta import DeleteOptions
from dray.api.registry import Kind, kinds
from dray.api.status import ApiError
from dray.client import PatchFormat
from dray.controllers import ControllerSettings, Manager
from dray.reconcile import VirtualClock
from local_server import LocalServer, local_server

__all__ = ("Manifest", "World", "controller_world", "find_kind", "manifest", "node", "pod", "typed")


def find_kind(plural: str) -> Kind:
    """A kind by the plural that people type."""
    return next(kind for kind in kinds() if kind.plural == plural)


class World:
    """A cluster without scheduler and nodes: tests play both."""

    def __init__(self, server: LocalServer, manager: Manager) -> None:
        self.server = server
        self.manager = manager
        self.admin = server.client()

    @property
    def clock(self) -> VirtualClock:
        """Moves only when told to."""
        return self.server.clock

    async def settle(self, seconds: float = 1.0) -> None:
        """Lets controllers work, and time pass."""
        await self.clock.advance(seconds, turns=30)

    async def create(self, *manifests: Manifest) -> Any:
        """Creates objects; returns the last."""
        made: Any = None
        for one in manifests:
            made = await self.admin.create(typed(one))
        return made

    async def get(self, plural: str, name: str, namespace: str = "default") -> Any:
        """An object, None if there is none."""
        kind = find_kind(plural)
        try:
            return await self.admin.get(kind, namespace if kind.namespaced else "", name)
        except ApiError as error:
            assert error.code == 404, error
            return None

    async def objects(self, plural: str, namespace: str = "default") -> list[Any]:
        """All objects of a kind in a namespace."""
        kind = find_kind(plural)
        found = await self.admin.list(kind, namespace if kind.namespaced else "")
        return list(cast(Any, found.items))

    async def patch(self, plural: str, name: str, patch: Any, subresource: str = "", namespace: str = "default") -> Any:
        """Merges a patch into an object."""
        kind = find_kind(plural)
        scope = namespace if kind.namespaced else ""
        return await self.admin.patch(kind, scope, name, patch, format=PatchFormat.MERGE, subresource=subresource)

    async def delete(self, plural: str, name: str, namespace: str = "default", **options: Any) -> None:
        """Deletes an object."""
        kind = find_kind(plural)
        await self.admin.delete(kind, namespace if kind.namespaced else "", name, DeleteOptions(**options))

    async def events(self, about: str) -> list[tuple[str, str]]:
        """Reason and message of events about an object of that name, everywhere."""
        found = await self.admin.list(find_kind("events"))
        return [
            (event.reason, event.message)
            for event in found.items
            if isinstance(event, Event) and event.involved_object.name == about
        ]

    def metric(self, name: str, /, **labels: str) -> float | None:
        """The value of a metric."""
        return self.manager.metrics.get_sample_value(name, labels)


@contextlib.asynccontextmanager
async def controller_world(
    *wanted: str, server: LocalServer | None = None, settings: ControllerSettings | None = None
) -> AsyncIterator[World]:
    """Running controllers, each as its own ServiceAccount; on a new server, or on one that is there."""
    async with contextlib.AsyncExitStack() as stack:
        running = server if server is not None else await stack.enter_async_context(local_server())
        watcher = running.component("kube-controller-manager")
        manager = Manager(
            watcher,
            running.clock,
            wanted=wanted,
            client_for=running.component,
            settings=settings,
            foreign_kinds=running.foreign_kinds,
        )
        task = asyncio.get_running_loop().create_task(manager.run())
        world = World(running, manager)
        try:
            await world.settle(0.1)
            yield world
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
