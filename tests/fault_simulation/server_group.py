"""Several API servers on one etcd: each call goes to any that is up; one is stopped or crashes now and then."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Iterator
from typing import Any

from dray.reconcile import VirtualClock
from dray.server.api_server import ApiServer as Server
from dray.server.api_server import Options
from dray.server.etcd_instance import layout
from dray.server.instance import decode_stored
from dray.server.local import LocalClient
from dray.server.objects import numbered
from dray.server.security.certificates import create_private_key
from dray.server.upkeep import together
from dray.store import Closed, Event, EventType, Record, Retention, StorageError, Uncertain
from dray.store.etcd import EtcdAddress, EtcdStore
from dray.store.etcd.generated import etcd_pb2 as pb
from dray.store.etcd.loading import Loaded
from dray.store.etcd.revisions import number, position, unmarked
from dray.store.stamping import stamped
from fault_simulation.api_server import Started, Witness
from fault_simulation.etcd import Etcd
from fault_simulation.etcd_network import CALM, STORM, EtcdNetwork, SimulatedConnection, version_of
from local_server import ADMIN

ADDRESS = EtcdAddress(urls=("http://127.0.0.1:1",))
HISTORY_SECONDS = 60.0
LOOK_SECONDS = 15.0
TOLD_SECONDS = 0.1
"""So long after a change every server has been told of it, when nothing fails."""
VERSIONS = ("3.5.9", "3.4.20")
"""One that says how far it has told when it is asked, and one that must not be asked."""


class Skewed:
    """A clock on another machine, which is some seconds ahead, or behind."""

    def __init__(self, clock: VirtualClock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self.monotonic = clock.monotonic
        self.sleep = clock.sleep

    def now(self) -> float:
        """Seconds since 1970, as it believes."""
        return self._clock.now() + self._seconds


class ServerGroup:
    """Looks like one server to the network."""

    def __init__(
        self,
        clock: VirtualClock,
        witness: Witness,
        seed: int,
        count: int,
        on_fault: Callable[[str], None],
        *,
        skew: float = 0.0,
        started: Started | None = None,
    ) -> None:
        """Clocks of servers are up to `skew` seconds off; `started` is told of each server when it has started."""
        self._skew = skew
        self._started = started
        self._skews = random.Random(seed + 5)
        self._clock = clock
        self._witness = witness
        self._seed = seed
        self._count = count
        self._random = random.Random(seed + 3)
        self._layout = layout(ADDRESS.prefix)
        self._key = create_private_key()
        self.etcd = Etcd(clock.monotonic, VERSIONS[seed % 2])
        self.etcd.listeners.append(self._see)
        self.network = EtcdNetwork(self.etcd, random.Random(seed + 4), on_fault)
        self._changed_at = 0.0
        self._running: list[_Member] = []
        self._starts = 0

    @property
    def is_stormy(self) -> bool:
        """Whether the ways to etcd are bad."""
        return self.network.faults is STORM

    @is_stormy.setter
    def is_stormy(self, value: bool) -> None:
        self.network.faults = STORM if value else CALM
        if not value:
            self.network.recover()

    def _see(self, events: list[Any], revision: int) -> None:
        """Every change, in etcd's order."""
        self._changed_at = self._clock.monotonic()
        for told in events:
            key = self._layout.key(told.kv.key)
            if key is None:
                continue
            if told.type == pb.Event.EventType.DELETE:
                record = Record(key, number(revision, 0), 0, b"")
                self._witness(Event(EventType.DELETED, record, None))
            else:
                made = number(revision, position(told.kv.value))
                data = stamped(unmarked(told.kv.value), made)
                self._witness(Event(EventType.MODIFIED, Record(key, made, made, data, None, decode_stored), None))

    async def start(self) -> None:
        """Starts those that are down."""
        while len(self._running) < self._count:
            self._starts += 1
            loaded = Loaded(self.etcd.revision, self.etcd.values(), version_of(self.etcd))
            member = _Member(self, self._seed * 1000 + self._starts, loaded)
            try:
                await member.start()
            except StorageError:  # etcd is away: it is started again, as systemd does
                await member.crash()
                await asyncio.sleep(1.0)
                continue
            if self._started is not None:
                self._started(member.server.local_client)
            self._running.append(member)

    async def stop(self, *, crash: bool = False) -> None:
        """Ends one of them."""
        if self._running:
            member = self._running.pop(self._random.randrange(len(self._running)))
            await (member.crash() if crash else member.stop())

    async def close(self) -> None:
        """Ends all of them."""
        while self._running:
            await self.stop(crash=True)

    async def settle(self) -> None:
        """Until everybody was told of the last change: nodes never cease to say that they are there."""
        while self._clock.monotonic() - self._changed_at < TOLD_SECONDS:
            await asyncio.sleep(TOLD_SECONDS / 2)

    def differences(self) -> Iterator[str]:
        """What servers show otherwise than etcd has it, when nothing is on its way any more."""
        there = {self._layout.key(kv.key): kv for kv in self.etcd.values()}
        expected = {key: number(kv.mod_revision, position(kv.value)) for key, kv in there.items() if key is not None}
        for place, member in enumerate(self._running):
            tables = member.store._tables.values()
            shown = {key: record.revision for table in tables for key, record in table.records.items()}
            for key in sorted(expected.keys() | shown.keys()):
                if expected.get(key) != shown.get(key):
                    yield f"server {place} shows {key} at {shown.get(key)}, and etcd has it at {expected.get(key)}"
            for table in tables:
                told = [event.revision for event in table.log.events]
                if told != sorted(set(told)):
                    yield f"server {place} tells changes of {table.resource} that cannot be told apart"

    def lose_leader(self) -> None:
        """etcd chooses another leader."""
        self.network.lose_leader(self._random.choice([0.2, 2.0, 10.0]))

    def connect(self, account: str) -> LocalClient:
        """A client of one of them. Raises ConnectionRefusedError."""
        if not self._running:
            raise ConnectionRefusedError("connection refused")
        server = self._random.choice(self._running).server
        return server.client_of(ADMIN) if account == "admin" else server.local_client(account)


class _Member:
    """One server with its store."""

    def __init__(self, group: ServerGroup, seed: int, loaded: Loaded) -> None:
        self._connection = SimulatedConnection(ADDRESS, group.network)
        self.store = EtcdStore(
            ADDRESS,
            group._layout,
            decode_stored,
            numbered,
            loaded,
            retention=Retention(max_age=HISTORY_SECONDS),
            clock=group._clock.monotonic,
            connect=lambda _address: self._connection,
        )
        clock = Skewed(group._clock, group._skews.uniform(-group._skew, group._skew))
        self.server = Server(self.store, clock, Options(signing_key=group._key), randomness=random.Random(seed))
        self._upkeep: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Follows etcd, and has what every cluster has. Raises StorageError."""
        await self.store.start()
        await together.ensure(self.store, self.server.prepare)
        self._upkeep = asyncio.get_running_loop().create_task(self._compact())

    async def _compact(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            with contextlib.suppress(StorageError):
                await self.store.compact()

    async def stop(self) -> None:
        """Ends in good order."""
        await self._end_upkeep()
        await self.store.close()

    async def crash(self) -> None:
        """Ends at once: nothing that it does from now on has any effect, but for what is on its way."""
        self._connection.is_dead = True
        await self._end_upkeep()
        store = self.store
        store._closed = True
        for watchers in list(store._groups.values()):
            watchers.end_all(Closed("the server has died"))
        store._writes.settle(list(store._writes.in_flight.values()), Uncertain("the server has died"))
        store._rounds.close()
        tasks = list(store._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _end_upkeep(self) -> None:
        if self._upkeep is not None:
            self._upkeep.cancel()
            await asyncio.gather(self._upkeep, return_exceptions=True)
