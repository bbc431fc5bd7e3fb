"""One informer per kind, shared by all components of a process."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from typing import Any, TypeVar, cast

from dray.api.meta import Object
from dray.api.registry import Kind
from dray.client import Client, Informer
from dray.reconcile.clock import Clock

T = TypeVar("T", bound=Object)

RESTART_SECONDS = 1.0

log = logging.getLogger(__name__)


class Informers:
    """Makes informers when they are first asked for, and runs them all."""

    def __init__(self, client: Client, clock: Clock) -> None:
        """`client` must be allowed to list and watch every kind that is going to be asked for."""
        self._client = client
        self._clock = clock
        self._informers: dict[Kind, Informer[Any]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._running = False

    def of(self, kind: Kind, type_: type[T]) -> Informer[T]:
        """The informer of a kind, whose objects are of a type; it runs from now on if `run` does."""
        found = self._informers.get(kind)
        if found is None:
            if not issubclass(kind.hub, type_):
                raise TypeError(f"objects of kind {kind.kind} are no {type_.__name__}")
            found = self._informers[kind] = Informer(self._client, kind, sleep=self._clock.sleep)
            if self._running:
                self._start(found)
        return cast(Informer[T], found)

    def __iter__(self) -> Iterator[Informer[Any]]:
        return iter(list(self._informers.values()))

    async def run(self) -> None:
        """Keeps all informers current until cancelled."""
        self._running = True
        for informer in self._informers.values():
            self._start(informer)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self._running = False
            tasks, self._tasks = self._tasks, []
            for task in tasks:
                task.cancel()
            for task in tasks:
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    def _start(self, informer: Informer[Any]) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(self._keep_running(informer)))

    async def _keep_running(self, informer: Informer[Any]) -> None:
        """A handler that fails must not leave everybody else without news: list again, and say so."""
        while True:
            try:
                await informer.run()
            except Exception as error:
                informer.last_error = f"{type(error).__name__}: {error}"
                log.exception("informer of %s failed; it starts again", informer.kind.resource)
            await self._clock.sleep(RESTART_SECONDS)
