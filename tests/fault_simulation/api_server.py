"""The API server of a simulation: in memory, restarted or crashed at any moment, with somebody who sees every write."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dray.reconcile import VirtualClock
from dray.server.local import LocalClient
from dray.store import Event, MemoryBackend, StorageError
from dray.store.backend import Batch
from local_server import LocalServer

Witness = Callable[[Event], None]
"""Sees each change once, in the order in which they became durable."""
Started = Callable[[Callable[[str], LocalClient]], None]
"""Told of a server that has started, by how to become a client of it as a component."""


class WitnessedBackend(MemoryBackend):
    """Keeps what was committed, tells the witness, and loses what comes after a crash."""

    def __init__(self, witness: Witness) -> None:
        super().__init__()
        self._witness = witness
        self.is_crashed = False

    def commit(self, batch: Batch) -> None:
        """Stores a batch, unless the server is gone by now."""
        if self.is_crashed:
            raise StorageError("the server crashed before this was written")
        super().commit(batch)
        for event in batch.events:
            self._witness(event)


class ApiServer:
    """One server at a time on the same storage. While it is down, connections are refused."""

    def __init__(self, clock: VirtualClock, witness: Witness, seed: int, started: Started | None = None) -> None:
        """`started` is told of each server before anybody else connects to it."""
        self._clock = clock
        self._started = started
        self._seed = seed
        self._backend = WitnessedBackend(witness)
        self._starts = 0
        self._running: LocalServer | None = None
        self.is_stormy = False
        """What is stored is in memory: there is no way on which it could get lost."""

    async def start(self) -> None:
        """Starts, with the namespaces and roles that every cluster has."""
        self._starts += 1
        self._backend.is_crashed = False
        # Each start draws other uids: what a seed of the last one would repeat.
        server = LocalServer(self._clock, self._backend, self._seed * 1000 + self._starts)
        await server.prepare()
        if self._started is not None:
            self._started(server.component)
        self._running = server

    async def stop(self, *, crash: bool = False) -> None:
        """Ends all watches. What was not written yet is, or is lost in a crash."""
        server, self._running = self._running, None
        if server is not None:
            self._backend.is_crashed = crash
            await server.store.close()

    async def close(self) -> None:
        """Ends it for good."""
        await self.stop()

    async def settle(self) -> None:
        """It has always been told of everything."""

    def differences(self) -> Iterator[str]:
        """What it shows is what is stored."""
        yield from ()

    def lose_leader(self) -> None:
        """There is none."""

    def connect(self, account: str) -> LocalClient:
        """A client with the rights of a component; `admin` may do everything. Raises ConnectionRefusedError."""
        if self._running is None:
            raise ConnectionRefusedError("connection refused")
        return self._running.client() if account == "admin" else self._running.component(account)
