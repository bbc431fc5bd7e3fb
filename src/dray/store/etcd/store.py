"""The store on etcd: writes are guarded transactions, and what is read comes from etcd's watch."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from os import PathLike
from typing import Any, ClassVar, Final

from dray.store.backend import Horizons
from dray.store.encryption import NONE, Encryption, Undecipherable
from dray.store.errors import (
    BackupError,
    Closed,
    Slow,
    StorageError,
    Uncertain,
    Unreachable,
)
from dray.store.etcd.address import EtcdAddress
from dray.store.etcd.alone import Alone
from dray.store.etcd.calls import STATUS
from dray.store.etcd.compaction import Compaction
from dray.store.etcd.connection import Connection
from dray.store.etcd.feed import Feed
from dray.store.etcd.generated import etcd_pb2 as pb
from dray.store.etcd.layout import Layout
from dray.store.etcd.loading import CannotLoad, Loaded, Loader
from dray.store.etcd.revisions import (
    Numbered,
    etcd_revision,
    last_number,
    number,
    position,
    unmarked,
)
from dray.store.etcd.rounds import Rounds
from dray.store.etcd.session import Session
from dray.store.etcd.transactions import Write
from dray.store.etcd.writes import Writes
from dray.store.log import Retention, Total
from dray.store.records import ITSELF, Basis, Decode, Event, EventType, Key, Operation, Record
from dray.store.shares import Shares, share_of
from dray.store.stamping import NotOurs, stamped
from dray.store.store import SharedStats, Stats, Store
from dray.store.table import Table

log = logging.getLogger(__name__)

_DELETE: Final = pb.Event.EventType.DELETE


class EtcdStore(Store):
    """A store that other servers write to, too. Open it with `open_store`, then `start` it on the loop."""

    is_shared: ClassVar[bool] = True

    def __init__(
        self,
        address: EtcdAddress,
        layout: Layout,
        decode: Decode,
        numbered: Numbered,
        loaded: Loaded,
        *,
        encryption: Encryption = NONE,
        retention: Retention | None = None,
        clock: Callable[[], float] = time.monotonic,
        released: Callable[[], None] = lambda: None,
        connect: Callable[[EtcdAddress], Connection] = Connection,
    ) -> None:
        start = last_number(loaded.revision)
        super().__init__(start, Horizons(start), retention or Retention(), clock, Shares(share_of(0)), decode)
        self.address = address
        self._layout = layout
        self._encryption = encryption
        self._unreadable = ""
        self._numbered = numbered
        self._released = released
        self._size = (0, 0)
        self._leader = 0
        self._leader_changes = 0
        self._is_started = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._connection = connect(address)
        self._connection.expect(loaded.revision)
        self._session = Session(self._connection, layout)
        self._feed = Feed(self, self._connection, layout, loaded.version)
        self._session.arrived = self._arrived
        self._alone = Alone(self._connection, self._session, layout, self._ask_soon)
        self._rounds = Rounds(self._latest, self._feed.nudge, self.progress)
        self._writes = Writes(self, self._connection, self._session, layout, encryption, self._run)
        self._compaction = Compaction(self._connection, self._session, layout, self._retention.max_age)
        self._fill(loaded)

    # ---- reads ------------------------------------------------------------------------------------------------

    def pending(self, key: Key) -> Record | None:
        """What is on its way to etcd for `key`, if anything is."""
        return self._writes.pending(key)

    @property
    def is_current(self) -> bool:
        """Whether this is the only server, and all that it was told of is visible. Needs a running loop."""
        is_usable = self._feed.is_sure and not (self._closed or self._unreadable)
        return is_usable and self._alone.is_certain(self.progress.revision)

    def _ask_soon(self) -> None:
        self._rounds.begin()

    async def _latest(self) -> int:
        """The latest revision, of an etcd that has the past that is in memory. Raises Unreachable."""
        revision = await self._alone.latest()
        await self._feed.sure()
        return revision

    async def catch_up(self) -> int:
        """Waits until everything is visible that was acknowledged anywhere before. Raises Unreachable."""
        self._check_open()
        if self.is_current:
            return self.revision
        revision = await self._rounds.join()
        self.check_whole()  # what was waited for may be what cannot be read
        return revision

    def check_whole(self) -> None:
        """That nothing is left out of what can be seen here. Raises Unreachable."""
        if self._unreadable:
            raise Unreachable(self._unreadable)

    def _check_open(self) -> None:
        super()._check_open()
        self.check_whole()

    @property
    def problem(self) -> StorageError | None:
        """Why etcd cannot be used now."""
        why = self._unreadable or self._feed.problem or self._connection.failure
        return Unreachable(why) if why else None

    @property
    def refusal(self) -> str:
        """Why etcd takes nothing that needs room."""
        return self._writes.refusal

    def stats(self) -> Stats:
        """Numbers for metrics."""
        return self._stats(
            pending_writes=len(self._writes.in_flight),
            commits=self._writes.commits,
            commit_seconds=self._writes.commit_seconds,
            used_bytes=self._size[0],
            quota_bytes=0,
            shared=SharedStats(
                conflicts=self._writes.conflicts,
                uncertain=self._writes.lost_answers,
                watch_restarts=self._feed.reconnects,
                leader_changes=self._leader_changes,
                catch_ups=self._rounds.count,
                catch_up_seconds=self._rounds.seconds,
            ),
        )

    # ---- writes -----------------------------------------------------------------------------------------------

    async def transact(self, operations: Sequence[Operation], basis: Basis = ITSELF) -> Sequence[Record]:
        """Do all operations or none, at one revision. Keys must differ."""
        if len({operation.key for operation in operations}) != len(operations):
            raise ValueError("a transaction names a key twice")
        return await self._writes.commit(operations, basis) if operations else []

    async def _write(self, operation: Operation, basis: Basis = ITSELF) -> Record:
        return (await self._writes.commit((operation,), basis))[0]

    def judge(self, operation: Operation) -> Record | None:
        """What an operation replaces. Raises Exists, NotFound, Conflict, Closed."""
        self._check_open()
        return self._check(operation)

    def check_room(self, event: Event) -> None:
        """Raises ShareExceeded for a change that needs more room than there is a share for."""
        self._shares.check(event)

    def acknowledged(self, revision: int) -> None:
        """Somebody is told of a write that is not visible yet: readers wait for it."""
        self._alone.acknowledged(revision)

    async def reach(self, revision: int) -> None:
        """Waits until a revision is visible. Raises Unreachable."""
        await self._rounds.reach(revision)

    # ---- what etcd tells --------------------------------------------------------------------------------------

    def apply(self, events: Sequence[Any], revision: int) -> None:
        """Take changes in the order of etcd's revisions, all of each. Everything up to `revision` was told."""
        touched: dict[str, Table] = {}
        seen: dict[int, Write] = {}
        latest = size = 0
        for told in events:
            kv = told.kv
            key = self._layout.key(kv.key)
            value = None if told.type == _DELETE else kv.value
            if key is None:
                self._take_own(kv.key, 0 if value is None else kv.mod_revision)
                continue
            table = touched.get(key.resource) or self._table(key.resource)
            touched[key.resource] = table
            write = self._writes.in_flight.get(key)
            try:
                latest = _number(kv.mod_revision, value, latest)
                event = self._event(table, key, value, latest, write)
            except NotOurs:
                log.error("%s was written by somebody else; it is left out", kv.key.decode(errors="replace"))
                continue
            except Undecipherable as error:  # what cannot be told must not seem to be absent
                self._unreadable = f"{error}, and start this server again"
                log.error("%s", self._unreadable)
                if (group := self._groups.pop(key.resource, None)) is not None:
                    group.end_all(Slow(key.resource, self.revision))
                continue
            if event is not None:
                table.apply(event)
                size += event.record.size
            if write is not None and self._writes.is_seen(write, key, value, latest):
                seen[id(write)] = write
        self.progress.revision = max(self.progress.revision, last_number(revision))
        self._applied(touched.values(), size)
        self._pruned(touched.values())
        # The writers go first: what they note of their own writes, watchers need not find out.
        self._writes.settle(seen.values(), None)
        loop = asyncio.get_running_loop()
        for resource in touched:
            if (group := self._groups.get(resource)) is not None:
                group.notify(loop)
        self._rounds.advanced(self.progress.revision)

    def _event(self, table: Table, key: Key, value: bytes | None, number: int, write: Write | None) -> Event | None:
        previous = table.records.get(key)
        if value is None:
            if previous is None:
                return None
            return Event(EventType.DELETED, self.renumbered(previous, number, previous.create_revision), previous)
        kind = EventType.ADDED if previous is None else EventType.MODIFIED
        created = number if previous is None else previous.create_revision
        if write is not None and write.values.get(key) == value:
            own = next(event.record for event in write.events if event.record.key == key)
            self._outdated.discard(key)
            return Event(kind, self.renumbered(own, number, created), previous)
        data = stamped(self._opened(key, value), number)
        return Event(kind, Record(key, number, created, data, None, self._decode), previous)

    def _opened(self, key: Key, value: bytes) -> bytes:
        """The object's bytes in what etcd has. Raises NotOurs, Undecipherable."""
        data, is_outdated = self._encryption.open(key, unmarked(value))
        (self._outdated.add if is_outdated else self._outdated.discard)(key)
        return data

    def renumbered(self, record: Record, revision: int, create_revision: int) -> Record:
        """A record with another revision."""
        data = stamped(record.data, revision)
        if not record.is_decoded:
            return Record(record.key, revision, create_revision, data, None, self._decode)
        return Record(record.key, revision, create_revision, data, self._numbered(record._obj, revision))

    def _take_own(self, path: bytes, revision: int) -> None:
        """A key of dray's own has another revision of etcd now, 0 if it is gone."""
        self._writes.take_guard(path, revision)
        self._alone.take(path, revision)

    def _fill(self, loaded: Loaded) -> None:
        """Tables of what was loaded."""
        found: dict[str, dict[Key, Record]] = {}
        for kv in loaded.values:
            key = self._layout.key(kv.key)
            if key is None:
                self._take_own(kv.key, kv.mod_revision)
                continue
            try:
                revision = number(kv.mod_revision, position(kv.value))
                data = stamped(self._opened(key, kv.value), revision)
            except NotOurs:
                where = kv.key.decode(errors="replace")
                raise CannotLoad(
                    f"etcd at {self.address} has {where}, which was not written by dray. The data of a Kubernetes "
                    "cluster cannot be read; give another --etcd-prefix."
                ) from None
            record = Record(key, revision, number(kv.create_revision, 0), data, None, self._decode)
            self.sweep.loaded(record.size)
            found.setdefault(key.resource, {})[key] = record
        for resource, records in found.items():
            horizon = last_number(loaded.revision)
            table = self._tables[resource] = Table(resource, self._retention, self._shares, horizon, self._history)
            table.load(records, ())

    def reload(self, loaded: Loaded) -> None:
        """The past that we have not seen is gone: begin anew, and so does whoever watches."""
        for group in list(self._groups.values()):
            group.end_all(Slow(group.resource, self.revision))
        self._groups.clear()
        self._tables.clear()
        self._history = Total()
        self._shares = Shares(self._shares.most)
        self._writes.forget_guards()
        self._alone.forget()
        self._horizons = Horizons(last_number(loaded.revision))
        self._fill(loaded)
        self.progress.revision = last_number(loaded.revision)
        self._writes.settle_all(Uncertain("it was not seen whether the change was made"))
        self._rounds.advanced(self.progress.revision)

    # ---- life -------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Follow what others write. Raises Unreachable."""
        self._is_started = True
        self._run(self._feed.run())
        await self._session.fence()
        await self.catch_up()
        await self._claim()
        self._run(self._session.keep(self._look))

    async def _arrived(self, revision: int) -> None:
        """Others see that this server is there: nobody believes to be alone afterwards. Raises StorageError."""
        await self._rounds.reach(last_number(revision))
        await self._alone.join()

    async def _claim(self) -> None:
        with contextlib.suppress(StorageError):
            await self._alone.claim(etcd_revision(self.revision))

    async def _look(self) -> None:
        """How large etcd is and who leads it, for metrics; that it answers, for health."""
        with contextlib.suppress(StorageError, Closed):
            status = await self._connection.ask(STATUS, pb.StatusRequest(), 3.0)
            self._size = (status.dbSizeInUse, status.dbSize)
            if status.leader:  # 0 while there is none
                self._leader_changes += self._leader not in (0, status.leader)
                self._leader = status.leader
            await self._rounds.join()  # a watch that has gone silent is noticed even if nobody reads
            await self._claim()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def compact(self) -> None:
        """Let go of history beyond the retention: here, and in etcd if it is this server's turn."""
        self._check_open()
        self._pruned(self._tables.values())
        await self._compaction.look(self._clock(), self.revision)

    async def backup(self, path: str | PathLike[str]) -> None:
        """Not from here: etcd is backed up by its own means."""
        raise BackupError(f"cannot write {path}: back etcd up with `etcdctl snapshot save`")

    async def close(self) -> None:
        """Ends watches and writes, and leaves etcd. Idempotent."""
        if self._closed:
            return
        self._closed = True
        for group in self._groups.values():
            group.end_all(Closed("the store is closing"))
        self.sweep.close()
        if self._is_started:
            while self._writes.calls:
                await asyncio.sleep(0.01)
            await self._session.end()
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self._writes.settle_all(Uncertain("the server ends"))
            self._rounds.close()
            await self._connection.close()
        self._released()


def _number(revision: int, value: bytes | None, before: int) -> int:
    """The number of a change, None if it is a removal, that is told of after that numbered `before`. Raises NotOurs."""
    if value is None:
        return before + 1 if etcd_revision(before) == revision else number(revision, 0)
    return number(revision, position(value))


def open_store(
    address: EtcdAddress,
    layout: Layout,
    decode: Decode,
    numbered: Numbered,
    *,
    encryption: Encryption = NONE,
    retention: Retention | None = None,
    released: Callable[[], None] = lambda: None,
) -> EtcdStore:
    """The store on a cluster of etcd, with what it holds now. `start` must follow.

    Raises AddressError, CannotLoad, Undecipherable.
    """
    loader = Loader(address)
    try:
        loaded = loader.load(layout)
    finally:
        loader.close()
    return EtcdStore(
        address, layout, decode, numbered, loaded, encryption=encryption, retention=retention, released=released
    )
