"""Informers for somebody who looks on: everything is read once, then kept current until they have seen enough."""

from __future__ import annotations

import asyncio
from typing import Any

from dray.api.registry import Kind
from dray.client import Client, Informer
from dray.process.tasks import end
from dray.reconcile import Clock


class Following:
    """`changed` is set whenever something is different; whoever looks clears it."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._informers: dict[Kind, Informer[Any]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self.changed = asyncio.Event()

    async def stop(self) -> None:
        """Ends all watches."""
        await end(self._tasks)
        self._tasks.clear()

    def follow(self, kind: Kind, namespace: str = "") -> Informer[Any]:
        """The informer of a kind, everywhere or in a namespace, which runs from `run_all` on."""
        informer: Informer[Any] = Informer(self._client, kind, namespace=namespace, sleep=self._clock.sleep)
        informer.on_change(self._on_any)
        self._informers[kind] = informer
        return informer

    async def run_all(self) -> None:
        """Everything has been read once. Raises ApiError or OSError if it cannot be read."""
        for informer in self._informers.values():
            await self._client.list(
                informer.kind, informer.namespace
            )  # says why it may not be read; an informer would try for ever
            self._tasks.append(asyncio.get_running_loop().create_task(informer.run()))
        for informer in self._informers.values():
            await informer.synced()

    def in_order(self, kind: Kind) -> list[Any]:
        """The objects of a kind by place; none of a kind that is not followed."""
        return sorted(self._informers.get(kind, ()), key=lambda obj: (obj.metadata.namespace, obj.metadata.name))

    def _on_any(self, _old: Any, _new: Any) -> None:
        self.changed.set()
