"""Runs controllers in one process: shared informers, one identity, one health entry and one restart each."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry

from dray.api.references import ObjectRef
from dray.client import Client
from dray.controllers.catalog import CATALOG, Component
from dray.controllers.context import Context, ForeignKinds, no_foreign_kinds
from dray.controllers.queue_metrics import QueueMetrics
from dray.controllers.selection import select
from dray.controllers.settings import ControllerSettings
from dray.eviction.recent import Recent
from dray.process.supervision import Supervisor
from dray.reconcile import Clock
from dray.reconcile.informers import Informers

ClientFor = Callable[[str], Client]
"""A client that acts as the ServiceAccount of that name in `kube-system`."""


class Manager:
    """The controllers that a `--controllers` list enables."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        wanted: Iterable[str] = ("*",),
        metrics: CollectorRegistry | None = None,
        client_for: ClientFor | None = None,
        informers: Informers | None = None,
        randomness: random.Random | None = None,
        settings: ControllerSettings | None = None,
        foreign_kinds: ForeignKinds = no_foreign_kinds,
    ) -> None:
        """`client` lists and watches for all; each controller writes through `client_for` its account, or `client`.

        Informers that are given are shared with others in the process, who run them. Names of pods are drawn from
        `randomness`, so that a simulation can be replayed; `foreign_kinds` tells what else is in namespaces.
        Raises SelectionError or SettingsError.
        """
        self.metrics = metrics or CollectorRegistry()
        self.informers = informers or Informers(client, clock)
        self._runs_informers = informers is None
        queue_metrics = QueueMetrics(self.metrics)
        self.controllers: dict[str, Component] = {}
        self._supervisor = Supervisor(clock)
        randomness = randomness or random.SystemRandom()
        settings = settings or ControllerSettings()
        recent_evictions: Recent[ObjectRef] = Recent()
        for name in select((*wanted, *settings.switched_off()), tuple(CATALOG)):
            entry = CATALOG[name]
            own = client_for(entry.account) if client_for is not None else client
            context = Context(
                own,
                self.informers,
                clock,
                self.metrics,
                queue_metrics,
                randomness,
                settings=settings,
                foreign_kinds=foreign_kinds,
                recent_evictions=recent_evictions,
            )
            self.controllers[name] = entry.make(context)

    def health(self) -> dict[str, str]:
        """By controller, why it does not work now; an empty text if it does (3902-31)."""
        crashed = self._supervisor.problems
        return {name: crashed.get(name, "") or found.problem for name, found in self.controllers.items()}

    async def ready(self) -> None:
        """Waits until the informers of all controllers have listed once."""
        for controller in self.controllers.values():
            for informer in controller.informers:
                await informer.synced()

    async def run(self) -> None:
        """Works until cancelled. A controller that fails is started again, and its health says so meanwhile."""
        for name, controller in self.controllers.items():
            self._supervisor.start(name, controller.run)
        if self._runs_informers:
            self._supervisor.start("informers", self.informers.run)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await self._supervisor.stop()
