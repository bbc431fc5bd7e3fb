"""The shell that most controllers share: keys from a queue, reconciled by several workers once informers are ready."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import Any, ClassVar, Generic, TypeVar

from dray.client import Informer
from dray.controllers.context import Context
from dray.reconcile import Controller, WorkQueue

K = TypeVar("K", bound=Hashable)


class QueueController(ABC, Generic[K]):
    """A controller with one queue. Subclasses register handlers that add keys, and say what to do about a key."""

    name: ClassVar[str]
    queue_name: ClassVar[str] = ""
    """The name of the queue in metrics, if it is not the controller's."""

    def __init__(self, context: Context, *informers: Informer[Any], workers: int = 4) -> None:
        """Work starts when all `informers` have listed once."""
        self.informers = informers
        self._context = context
        self._client = context.client
        self._clock = context.clock
        name = self.queue_name or self.name
        self._loop = Controller(name, self._measured, context.clock, workers=workers, report=context.report)
        self._durations = context.queue_metrics.add(self._loop.queue)

    @property
    def queue(self) -> WorkQueue[K]:
        """What is to be looked at."""
        return self._loop.queue

    @property
    def problem(self) -> str:
        """Why the controller cannot work now; empty if it can."""
        for informer in self.informers:
            if not informer.has_synced:
                why = f": {informer.last_error}" if informer.last_error else ""
                return f"waiting for {informer.kind.resource}{why}"
        return ""

    @abstractmethod
    async def reconcile(self, key: K) -> float | None:
        """Brings the world closer to what it should be. Returns after how many seconds to look again, if at all.

        Raises ApiError, OSError or TimeoutError to be tried again.
        """

    async def run(self) -> None:
        """Works until cancelled."""
        for informer in self.informers:
            await informer.synced()
        await self._loop.run()

    async def _measured(self, key: K) -> float | None:
        start = self._clock.monotonic()
        try:
            return await self.reconcile(key)
        finally:
            self._durations.observe(self._clock.monotonic() - start)
