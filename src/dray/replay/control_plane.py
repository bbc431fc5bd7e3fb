"""What decides in a replay: dray's own scheduler and controllers, and nodes, on an API server in the same process."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar, cast

from dray.client import Client
from dray.controllers import ControllerSettings, Manager
from dray.process.clock import Clock
from dray.process.supervision import Supervisor
from dray.reconcile import Informers
from dray.replay.kubelet import Kubelet
from dray.scheduler.scheduler import Scheduler
from dray.server.api_server import ApiServer, Options
from dray.server.beside import Beside
from dray.server.instance import decode_stored
from dray.server.security.certificates import create_private_key
from dray.server.security.identity import MASTERS, authenticated
from dray.store import LocalStore, MemoryBackend

R = TypeVar("R")

CONTROLLERS: Final = (
    "resourceclaim-controller",
    "device-taint-eviction-controller",
    "taint-eviction-controller",
    "taint-expiry-controller",
    "disruption-controller",
    "pod-garbage-collector-controller",
    "podgroup-protection-controller",
)
"""Those whose decisions are compared, and those they need. Workloads, node health and quotas are in the history."""

DISABLED_PLUGINS: Final = frozenset(
    {"LimitRanger", "PodSecurity", "Priority", "RuntimeClass", "ServiceAccount", "TaintNodesByCondition"}
)
"""Admission that the recorded objects have been through already."""

SEED: Final = 0
ADMIN: Final = authenticated("replay", (MASTERS,))


class ControlPlane:
    """Scheduler, controllers and nodes, over a client that may do everything."""

    def __init__(self, client: Client, clock: Clock, settings: ControllerSettings) -> None:
        """Raises SettingsError."""
        self.client = client
        self.clock = clock
        self.informers = Informers(client, clock)
        self.scheduler = Scheduler(client, clock, informers=self.informers)
        self.manager = Manager(
            client,
            clock,
            wanted=CONTROLLERS,
            settings=settings,
            informers=self.informers,
            randomness=random.Random(SEED),
        )
        self._kubelet = Kubelet(client, clock, self.informers)
        self._supervisor = Supervisor(clock)

    async def follow(self) -> None:
        """Everything that there is has been seen."""
        self._supervisor.start("informers", self.informers.run)
        for informer in self.informers:
            await informer.synced()

    async def start(self) -> None:
        """Everything runs."""
        run = self._supervisor.start
        run("scheduler", self.scheduler.run)
        run("controllers", self.manager.run)
        run("nodes", self._kubelet.run)
        await self.manager.ready()

    @property
    def problems(self) -> dict[str, str]:
        """By component, why it does not work."""
        return self._supervisor.problems

    async def stop(self) -> None:
        """Ends everything."""
        await self._supervisor.stop()


class _AtOnce(Beside):
    """Work that others would do in threads, done here and now: the same every time."""

    async def run(self, caller: str, function: Any, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ARG002 - as beside
        return function(*args, **kwargs)


@asynccontextmanager
async def memory_server(clock: Clock) -> AsyncIterator[ApiServer]:
    """An API server that keeps everything in memory, without HTTP; names and uids are the same every time."""
    store = LocalStore(MemoryBackend(), decode_stored, clock=clock.monotonic)
    options = Options(signing_key=create_private_key(), disabled_plugins=DISABLED_PLUGINS)
    server = ApiServer(store, clock, options, randomness=random.Random(SEED))
    server.engine.workers = _AtOnce()
    await server.prepare(with_roles=False)
    try:
        yield server
    finally:
        await store.close()


def client_of(server: ApiServer) -> Client:
    """A client that may do everything."""
    return cast(Client, server.client_of(ADMIN))
