"""One informer per kind, shared by all components of a process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, TypeVar, cast

from dray.api.meta import Object
from dray.api.registry import Kind
from dray.client import Client, Informer
from dray.process.clock import Clock
from dray.process.supervision import Supervisor

T = TypeVar("T", bound=Object)


class Informers:
    """Makes informers when they are first asked for, and runs them all."""

    def __init__(self, client: Client, clock: Clock) -> None:
        """`client` must be allowed to list and watch every kind that is going to be asked for."""
        self._client = client
        self._clock = clock
        self._informers: dict[tuple[Kind, str], Informer[Any]] = {}
        self._supervisor = Supervisor(clock)
        self._running = False

    def of(self, kind: Kind, type_: type[T], fields: str = "") -> Informer[T]:
        """The informer of a kind, whose objects are of a type; it runs from now on if `run` does.

        With `fields`, of those objects only that a field selector chooses: who needs one name of many keeps no others.
        """
        found = self._informers.get((kind, fields))
        if found is None:
            if not issubclass(kind.hub, type_):
                raise TypeError(f"objects of kind {kind.kind} are no {type_.__name__}")
            found = Informer(self._client, kind, fields=fields, sleep=self._clock.sleep)
            self._informers[kind, fields] = found
            if self._running:
                self._start(found, fields)
        return cast(Informer[T], found)

    def forget(self, kind: Kind) -> None:
        """Ends the informer of a kind that is gone, with all who listen to it."""
        if self._informers.pop((kind, ""), None) is not None:
            self._supervisor.end(_name(kind, ""))

    def __iter__(self) -> Iterator[Informer[Any]]:
        return iter(list(self._informers.values()))

    async def run(self) -> None:
        """Keeps all informers current until cancelled."""
        self._running = True
        for (_, fields), informer in self._informers.items():
            self._start(informer, fields)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self._running = False
            await self._supervisor.stop()

    def _start(self, informer: Informer[Any], fields: str) -> None:
        """A handler that fails must not leave everybody else without news: it lists again, and says so."""

        async def run() -> None:
            try:
                await informer.run()
            except Exception as error:
                informer.last_error = f"{type(error).__name__}: {error}"
                raise

        self._supervisor.start(_name(informer.kind, fields), run)


def _name(kind: Kind, fields: str) -> str:
    return f"informer of {kind.resource}" + (f" with {fields}" if fields else "")
