"""Between servers and etcd: calls that are refused, lost, answered to nobody or carried out late; streams that break.

A caller who hears nothing does not know whether its call was carried out, is, or will be.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc.aio
import msgspec

from dray.store import StorageError, Uncertain, Unreachable
from dray.store.etcd import EtcdAddress, Layout
from dray.store.etcd.calls import PUT, RANGE, TXN, WATCH, Method
from dray.store.etcd.connection import CALL_SECONDS, Connection
from dray.store.etcd.generated import etcd_pb2 as pb
from dray.store.etcd.loading import Loaded
from fault_simulation.etcd import Etcd

USUAL = 0.003
SLOWEST = 0.5
LATEST = 8.0
LONGEST_STALL = 2.0


class EtcdFaults(msgspec.Struct, frozen=True, kw_only=True):
    """How often things go wrong: shares of calls, and of what streams tell."""

    refuse: float = 0.02
    lose: float = 0.02
    silence: float = 0.03
    late: float = 0.02
    slow: float = 0.1
    drop: float = 0.005
    stall: float = 0.02


STORM = EtcdFaults()
CALM = EtcdFaults(refuse=0, lose=0, silence=0, late=0, slow=0, drop=0, stall=0)


class EtcdNetwork:
    """All ways to one etcd. `faults` may change at any time; while there is no leader, nothing is answered."""

    def __init__(self, etcd: Etcd, randomness: random.Random, on_fault: Callable[[str], None]) -> None:
        self.etcd = etcd
        self.random = randomness
        self.faults = CALM
        self.on_fault = on_fault
        self.streams: list[Stream] = []
        self._no_leader_until = 0.0
        self._late: set[asyncio.Task[None]] = set()

    @property
    def has_leader(self) -> bool:
        """Whether calls are answered."""
        return asyncio.get_running_loop().time() >= self._no_leader_until

    def lose_leader(self, seconds: float) -> None:
        """For so long, etcd chooses another leader. Streams end."""
        self._no_leader_until = asyncio.get_running_loop().time() + seconds
        for stream in list(self.streams):
            stream.end("etcdserver: no leader")

    def recover(self) -> None:
        """There is a leader."""
        self._no_leader_until = 0.0

    def later(self, method: Method, request: Any, seconds: float) -> None:
        """Carries a call out when nobody waits for it any more."""

        async def carry_out() -> None:
            await asyncio.sleep(seconds)
            with contextlib.suppress(StorageError):
                self.etcd.do(method, request)

        task = asyncio.get_running_loop().create_task(carry_out())
        self._late.add(task)
        task.add_done_callback(self._late.discard)


class SimulatedConnection(Connection):
    """What a server has to etcd. When the server has died, nothing comes through."""

    def __init__(self, address: EtcdAddress, network: EtcdNetwork) -> None:
        super().__init__(address)
        self._network = network
        self.is_dead = False

    async def call(self, method: Method, request: Any, seconds: float = CALL_SECONDS) -> Any:
        """One call, with what may become of it."""
        self.check()
        network = self._network
        faults, fate, before = network.faults, network.random.random(), self._latest
        await asyncio.sleep(network.random.uniform(0, SLOWEST if network.random.random() < faults.slow else USUAL))
        self._check_alive()
        if fate < faults.refuse:
            network.on_fault("etcd refused")
            raise self._failing(Unreachable("failed to connect"))
        if (fate := fate - faults.refuse) < faults.late or not network.has_leader:
            network.on_fault("etcd late")
            patience = network.random.uniform(0, seconds)
            if network.random.random() < 0.7:  # often just after its sender has given up
                network.later(
                    method, request, patience + network.random.uniform(0, network.random.choice([0.01, LATEST]))
                )
            await asyncio.sleep(patience)
            raise self._failing(Uncertain("deadline exceeded"))
        if (fate := fate - faults.late) < faults.lose:
            network.on_fault("etcd lost")
            raise self._failing(Uncertain("connection reset"))
        answer = network.etcd.do(method, request)
        if fate - faults.lose < faults.silence:
            network.on_fault("etcd silent")
            await asyncio.sleep(network.random.uniform(0, seconds))
            raise self._failing(Uncertain("the answer was lost"))
        await asyncio.sleep(network.random.uniform(0, USUAL))
        self._check_alive()
        self.failure = ""
        if method in (RANGE, PUT, TXN):
            self.expect(answer.header.revision, before)
        return answer

    def _failing(self, error: StorageError) -> StorageError:
        self.failure = str(error)
        return error

    def _check_alive(self) -> None:
        if self.is_dead:
            raise asyncio.CancelledError("the server has died")

    @contextlib.asynccontextmanager
    async def stream(self, method: Method = WATCH) -> AsyncIterator[Any]:
        """A conversation. Raises StorageError."""
        if not self._network.has_leader:
            raise Unreachable("no leader")
        stream = Stream(self._network) if method is WATCH else KeepAlive(self._network)
        try:
            yield stream
        finally:
            stream.cancel()

    async def load(self, layout: Layout, told: int) -> Loaded:
        """Everything as it is now."""
        del layout, told
        await asyncio.sleep(USUAL)
        etcd = self._network.etcd
        return Loaded(etcd.revision, etcd.values(), version_of(etcd))

    async def close(self) -> None:
        """Nothing to release."""


class Stream:
    """A watch of everything."""

    def __init__(self, network: EtcdNetwork) -> None:
        self._network = network
        self._told: deque[tuple[float, Any]] = deque()
        self._more = asyncio.Event()
        self._end = ""
        self._ready_at = 0.0
        self._start = 0
        network.streams.append(self)

    async def write(self, request: Any) -> None:
        """Begins the watch, or asks how far it has told."""
        etcd = self._network.etcd
        if request.HasField("progress_request"):
            self._tell(pb.WatchResponse(header=pb.ResponseHeader(revision=etcd.revision)))
            return
        start = self._start = request.create_request.start_revision
        self._tell(pb.WatchResponse(header=pb.ResponseHeader(revision=etcd.revision), created=True))
        if start <= etcd.compacted:
            self._tell(pb.WatchResponse(canceled=True, compact_revision=etcd.compacted))
            return
        missed = etcd.since(start)
        if missed:
            self._hear(missed, etcd.revision)
        etcd.listeners.append(self._hear)

    async def read(self) -> Any:
        """What comes next. Raises StorageError when the stream has broken."""
        loop = asyncio.get_running_loop()
        while True:
            if self._end:
                raise Unreachable(self._end)
            if self._told:
                wait = self._told[0][0] - loop.time()
                if wait <= 0:
                    return self._told.popleft()[1]
                await asyncio.sleep(wait)
                continue
            self._more.clear()
            await self._more.wait()

    def cancel(self) -> None:
        """Nobody listens any more."""
        self.end("cancelled")
        with contextlib.suppress(ValueError):
            self._network.streams.remove(self)

    def end(self, why: str) -> None:
        """Tells no more."""
        self._end = self._end or why
        self._more.set()
        with contextlib.suppress(ValueError):
            self._network.etcd.listeners.remove(self._hear)

    def _hear(self, events: list[Any], revision: int) -> None:
        network = self._network
        if revision < self._start:
            return  # it is asked for what comes later
        self._tell(pb.WatchResponse(header=pb.ResponseHeader(revision=revision), events=events))
        if network.random.random() < network.faults.drop:
            network.on_fault("etcd watch dropped")
            self.end("connection reset")

    def _tell(self, answer: Any) -> None:
        network = self._network
        delay = network.random.uniform(0, USUAL)
        if network.random.random() < network.faults.stall:
            network.on_fault("etcd watch stalled")
            delay = network.random.uniform(0, LONGEST_STALL)
        self._ready_at = max(self._ready_at, asyncio.get_running_loop().time() + delay)
        self._told.append((self._ready_at, answer))
        self._more.set()


class KeepAlive:
    """Renews a lease."""

    def __init__(self, network: EtcdNetwork) -> None:
        self._network = network
        self._lease = 0

    async def write(self, request: Any) -> None:
        """Asks for it."""
        self._lease = request.ID

    async def read(self) -> Any:
        """What is left of it; nothing while there is no leader."""
        await asyncio.sleep(self._network.random.uniform(0, USUAL))
        if not self._network.has_leader:
            return grpc.aio.EOF
        return pb.LeaseKeepAliveResponse(ID=self._lease, TTL=self._network.etcd.renew(self._lease))

    def cancel(self) -> None:
        """Nothing to end."""


def version_of(etcd: Etcd) -> tuple[int, ...]:
    """Which etcd it pretends to be."""
    return tuple(int(number) for number in etcd.version.split("."))
