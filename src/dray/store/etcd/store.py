"""The store on etcd: writes are guarded transactions, and what is read comes from etcd's watch."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from os import PathLike
from typing import Any, ClassVar, Final

from dray.store.backend import Horizons
from dray.store.encryption import NONE, Encryption, Undecipherable
from dray.store.errors import (
    BackupError,
    Closed,
    Conflict,
    Exists,
    NotFound,
    OutOfSpace,
    Slow,
    StorageError,
    Uncertain,
    Unreachable,
)
from dray.store.etcd import transactions
from dray.store.etcd.address import EtcdAddress
from dray.store.etcd.calls import COMPACT, PUT, STATUS, TXN
from dray.store.etcd.connection import Connection, Refused
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
from dray.store.etcd.transactions import Change, Write
from dray.store.log import Retention
from dray.store.records import Decode, Event, EventType, Key, Operation, Record
from dray.store.staging import stage
from dray.store.stamping import NotOurs, stamped
from dray.store.store import SharedStats, Stats, Store
from dray.store.table import Table

MOST_CALLS: Final = 4
"""So many transactions are on their way at once. Others gather meanwhile: fewer and larger ones cost less."""
LATE_SECONDS: Final = 5.0
"""So long an acknowledged write waits until it is visible here. Then its writer is told all the same."""

log = logging.getLogger(__name__)


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
        super().__init__(start, Horizons(start), retention or Retention(), clock)
        self.address = address
        self._layout = layout
        self._decode = decode
        self._encryption = encryption
        self._unreadable = ""
        self._numbered = numbered
        self._released = released
        self._connect = connect
        self._version = loaded.version
        self._guards: dict[bytes, int] = {}
        self._in_flight: dict[Key, Write] = {}
        self._guarded: dict[bytes, Write] = {}
        self._outbox: list[Write] = []
        self._is_scheduled = False
        self._written = 0
        self._calls = 0
        self._commits = 0
        self._conflicts = 0
        self._lost_answers = 0
        self._commit_seconds = 0.0
        self._refusal = ""
        self._size = (0, 0)
        self._past: deque[tuple[float, int]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._guard_prefix = layout.own("guards", "")
        self._fill(loaded)

    # ---- reads ------------------------------------------------------------------------------------------------

    def pending(self, key: Key) -> Record | None:
        """What is on its way to etcd for `key`, if anything is."""
        write = self._in_flight.get(key)
        return None if write is None else next(each.record for each in write.events if each.record.key == key)

    async def catch_up(self) -> int:
        """Waits until everything is visible that was acknowledged anywhere before. Raises Unreachable."""
        self._check_open()
        if self._unreadable:
            raise Unreachable(self._unreadable)
        return await self._rounds.join()

    @property
    def problem(self) -> StorageError | None:
        """Why etcd cannot be used now."""
        why = self._unreadable or self._feed.problem or self._connection.failure
        return Unreachable(why) if why else None

    @property
    def refusal(self) -> str:
        """Why etcd takes nothing that needs room."""
        return self._refusal

    def stats(self) -> Stats:
        """Numbers for metrics."""
        return Stats(
            revision=self.revision,
            objects={name: len(table.records) for name, table in self._tables.items()},
            watchers={name: len(group) for name, group in self._groups.items()},
            events={name: len(table.log.events) for name, table in self._tables.items()},
            pending_writes=len(self._in_flight),
            commits=self._commits,
            commit_seconds=self._commit_seconds,
            used_bytes=self._size[0],
            quota_bytes=0,
            shared=SharedStats(
                conflicts=self._conflicts,
                uncertain=self._lost_answers,
                watch_restarts=self._feed.reconnects,
                catch_ups=self._rounds.count,
                catch_up_seconds=self._rounds.seconds,
            ),
        )

    # ---- writes -----------------------------------------------------------------------------------------------

    async def transact(self, operations: Sequence[Operation]) -> Sequence[Record]:
        """Do all operations or none, at one revision. Keys must differ."""
        if len({operation.key for operation in operations}) != len(operations):
            raise ValueError("a transaction names a key twice")
        return await self._commit(operations, ()) if operations else []

    async def _write(self, operation: Operation, guards: Sequence[str] = ()) -> Record:
        return (await self._commit((operation,), guards))[0]

    async def _commit(self, operations: Sequence[Operation], guards: Sequence[str]) -> Sequence[Record]:
        """Judged by what is seen here; a refusal only by what is known to be current."""
        is_current = False
        paths = [self._guard_prefix + guard.encode() for guard in guards]
        while True:
            self._check_open()
            try:
                stored = [self._check(operation) for operation in operations]
            except (Exists, NotFound, Conflict) as refusal:
                if is_current or (isinstance(refusal, Conflict) and refusal.current.revision > refusal.expected):
                    raise
                await self.catch_up()
                is_current = True
                continue
            other = self._in_the_way(operations, paths)
            if other is not None:
                with contextlib.suppress(StorageError):
                    await other.settled()
                continue
            write = self._staged(operations, stored, paths)
            await write.done
            if not write.lost_at:
                return [self._result(event, write) for event in write.events]
            await self._rounds.reach(last_number(write.lost_at))
            is_current = True

    def _result(self, event: Event, write: Write) -> Record:
        """What the writer is told: the record as others see it, or as it was last."""
        record = event.record
        value = write.values[record.key]
        told = write.numbers.get(record.key) or number(write.made_at, 0 if value is None else position(value))
        if event.type is not EventType.DELETED:
            found = self.get(record.key)
            if found is not None and found.revision == told:
                return found
        return self._record(record, told, record.create_revision or told)

    def _in_the_way(self, operations: Iterable[Operation], guards: Iterable[bytes]) -> Write | None:
        for operation in operations:
            if (write := self._in_flight.get(operation.key)) is not None:
                return write
        return next((self._guarded[path] for path in guards if path in self._guarded), None)

    def _staged(self, operations: Sequence[Operation], stored: Sequence[Record | None], guards: list[bytes]) -> Write:
        """The write, on its way."""
        self._written += 1
        mark = f"{self._session.name}-{self._written}".encode()
        events = [stage(operation, previous, 0) for operation, previous in zip(operations, stored, strict=True)]
        changes = [
            Change(
                self._layout.path(event.record.key),
                0 if event.previous is None else etcd_revision(event.previous.revision),
                None if event.type is EventType.DELETED else self._encryption.seal(event.record.key, event.record.data),
            )
            for event in events
        ]
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        write = Write(events, changes, {path: self._guards.get(path, 0) for path in guards}, mark, done)
        for event in events:
            self._in_flight[event.record.key] = write
        for path in guards:
            self._guarded[path] = write
        self._send(write)
        return write

    def _send(self, write: Write) -> None:
        self._outbox.append(write)
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._send_waiting)

    def _send_waiting(self) -> None:
        """At the end of a turn, what has gathered goes, in as few transactions as can be."""
        self._is_scheduled = False
        if self._calls >= MOST_CALLS:
            return
        waiting, self._outbox = self._outbox, []
        for group in transactions.group(waiting):
            if self._calls >= MOST_CALLS:
                self._outbox += group
                continue
            self._calls += 1
            self._run(self._make(group))

    async def _make(self, group: list[Write]) -> None:
        """One transaction, until it is known what became of it."""
        epoch = self._session.epoch
        started = time.perf_counter()
        try:
            answer = await self._connection.send(TXN, transactions.request(self._session.key, epoch, group))
            self._commits += 1
            self._commit_seconds += time.perf_counter() - started
            self._refusal = ""
            await self._take(group, answer, epoch)
        except Uncertain as error:
            self._lost_answers += 1
            await self._find_out(group, error)
        except StorageError as error:
            if isinstance(error, OutOfSpace):
                self._refusal = str(error)
                group = self._send_removals(group)
            self._settle(group, error)
        except Exception as error:  # A bug must fail the writers, not hang them for ever.
            log.exception("a mistake while writing")
            self._settle(group, StorageError(f"cannot write: {error!r}"))
        finally:
            self._calls -= 1
            if self._outbox and not self._is_scheduled:
                self._send_waiting()

    def _send_removals(self, group: list[Write]) -> list[Write]:
        """etcd has no room for all of a group: what only takes away goes by itself. Those that are refused."""
        removals = [write for write in group if write.only_removes]
        if len(removals) == len(group):
            return group
        for write in removals:
            self._send(write)
        return [write for write in group if not write.only_removes]

    async def _take(self, group: list[Write], answer: pb.TxnResponse, epoch: int) -> None:
        """Writes that were made wait until they are seen; others are judged anew, once it is seen by what."""
        made = transactions.outcomes(answer, epoch, len(group))
        if made is None:
            try:
                await self._session.renew(epoch)
            except StorageError as error:
                self._settle(group, error)
                return
            for write in group:
                self._send(write)
            return
        revision = answer.header.revision
        for write, is_made in zip(group, made, strict=True):
            if not is_made:
                self._conflicts += 1
                self._forget(write)
                write.lose(revision)
            elif not write.done.done():
                write.made_at = revision
        waiting = [write for write in group if not write.done.done()]
        if self.revision >= last_number(revision):  # they were seen, perhaps as part of a state that was loaded anew
            self._settle(waiting, None)
        elif waiting:
            asyncio.get_running_loop().call_later(LATE_SECONDS, self._settle, waiting, None)

    async def _find_out(self, group: list[Write], error: Uncertain) -> None:
        """The answer was lost. Behind a fence, what has not been seen was not made, and may be tried anew."""
        try:
            fence = await self._session.fence()
            await self._rounds.reach(last_number(fence))
        except StorageError:
            self._settle(group, error)
            return
        for write in group:
            if write.done.done():
                continue
            if write.gone_at:  # that it is gone is what was asked for
                write.made_at = write.gone_at
                self._settle([write], None)
            else:
                self._forget(write)
                write.lose(fence)

    def _settle(self, writes: Iterable[Write], error: StorageError | None) -> None:
        for write in writes:
            self._forget(write)
            write.settle(error)

    def _forget(self, write: Write) -> None:
        for event in write.events:
            if self._in_flight.get(event.record.key) is write:
                del self._in_flight[event.record.key]
        for path in write.guards:
            if self._guarded.get(path) is write:
                del self._guarded[path]

    # ---- what etcd tells --------------------------------------------------------------------------------------

    def apply(self, events: Sequence[Any], revision: int) -> None:
        """Take changes in the order of etcd's revisions, all of each. Everything up to `revision` was told."""
        touched: dict[str, Table] = {}
        seen: dict[int, Write] = {}
        latest = 0
        for told in events:
            kv = told.kv
            key = self._layout.key(kv.key)
            if key is None:
                self._take_own(kv.key, kv.mod_revision if told.type == pb.Event.EventType.PUT else 0)
                continue
            table = touched.get(key.resource) or self._table(key.resource)
            touched[key.resource] = table
            write = self._in_flight.get(key)
            try:
                latest = _number(told, latest)
                event = self._event(table, key, told, latest, write)
            except NotOurs:
                log.error("%s was written by somebody else; it is left out", kv.key.decode(errors="replace"))
                continue
            except Undecipherable as error:  # what cannot be told must not seem to be absent
                self._unreadable = f"{error}, and start this server again"
                log.error("%s", self._unreadable)
                continue
            if event is not None:
                table.apply(event)
            if write is not None and self._is_seen(write, key, told, latest):
                seen[id(write)] = write
        self._progress.revision = max(self._progress.revision, last_number(revision))
        self._pruned(touched.values())
        loop = asyncio.get_running_loop()
        for resource in touched:
            if (group := self._groups.get(resource)) is not None:
                group.notify(loop)
        self._settle(seen.values(), None)
        self._rounds.advanced(self._progress.revision)

    def _is_seen(self, write: Write, key: Key, told: Any, number: int) -> bool:
        """Whether a change is the one that a write makes. Who made a record go away is known from the answer only."""
        value = write.values.get(key, b"")
        if told.type == pb.Event.EventType.DELETE:
            if value is None:
                write.gone_at = told.kv.mod_revision
                write.numbers[key] = number
            return value is None and write.made_at == told.kv.mod_revision
        if value != told.kv.value:
            return False
        write.made_at = told.kv.mod_revision
        write.numbers[key] = number
        return True

    def _event(self, table: Table, key: Key, told: Any, number: int, write: Write | None) -> Event | None:
        kv, previous = told.kv, table.records.get(key)
        if told.type == pb.Event.EventType.DELETE:
            if previous is None:
                return None
            return Event(EventType.DELETED, self._record(previous, number, previous.create_revision), previous)
        kind = EventType.ADDED if previous is None else EventType.MODIFIED
        created = number if previous is None else previous.create_revision
        if write is not None and write.values.get(key) == kv.value:
            own = next(event.record for event in write.events if event.record.key == key)
            self._outdated.discard(key)
            return Event(kind, self._record(own, number, created), previous)
        data = stamped(self._opened(key, kv.value), number)
        return Event(kind, Record(key, number, created, data, None, self._decode), previous)

    def _opened(self, key: Key, value: bytes) -> bytes:
        """The object's bytes in what etcd has. Raises NotOurs, Undecipherable."""
        data, is_outdated = self._encryption.open(key, unmarked(value))
        (self._outdated.add if is_outdated else self._outdated.discard)(key)
        return data

    def _record(self, record: Record, revision: int, create_revision: int) -> Record:
        """A record with another revision."""
        data = stamped(record.data, revision)
        if record._decode is not None:
            return Record(record.key, revision, create_revision, data, None, self._decode)
        return Record(record.key, revision, create_revision, data, self._numbered(record._obj, revision))

    def _take_own(self, path: bytes, revision: int) -> None:
        if path.startswith(self._guard_prefix):
            self._guards[path] = revision

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
            found.setdefault(key.resource, {})[key] = record
        for resource, records in found.items():
            self._tables[resource] = Table.loaded(resource, self._retention, last_number(loaded.revision), records, ())

    def reload(self, loaded: Loaded) -> None:
        """The past that we have not seen is gone: begin anew, and so does whoever watches."""
        for group in list(self._groups.values()):
            group.end_all(Slow(group.resource, self.revision))
        self._groups.clear()
        self._tables.clear()
        self._guards.clear()
        self._horizons = Horizons(last_number(loaded.revision))
        self._fill(loaded)
        self._progress.revision = last_number(loaded.revision)
        for write in list({id(each): each for each in self._in_flight.values()}.values()):
            if write.made_at:
                self._settle([write], None)
            else:
                self._settle([write], Uncertain("it was not seen whether the change was made"))
        self._rounds.advanced(self._progress.revision)

    # ---- life -------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Follow what others write. Raises Unreachable."""
        self._connection = self._connect(self.address)
        self._session = Session(self._connection, self._layout)
        self._feed = Feed(self, self._connection, self._layout, self._version)
        self._rounds = Rounds(self._latest, self._feed.nudge, self._progress)
        self._run(self._feed.run())
        await self._session.fence()
        await self.catch_up()
        self._run(self._session.keep(self._look))

    async def _latest(self) -> int:
        return last_number(await self._connection.revision(self._session.key))

    async def _look(self) -> None:
        """How large etcd is, for metrics; that it answers, for health."""
        with contextlib.suppress(StorageError, Closed):
            status = await self._connection.ask(STATUS, pb.StatusRequest(), 3.0)
            self._size = (status.dbSizeInUse, status.dbSize)
            await self.catch_up()  # a watch that has gone silent is noticed even if nobody reads

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def compact(self) -> None:
        """Let go of history beyond the retention: here, and in etcd if it is this server's turn."""
        self._check_open()
        self._pruned(self._tables.values())
        now = self._clock()
        self._past.append((now, self.revision))
        target = 0
        while self._past and now - self._past[0][0] >= self._retention.max_age:
            target = etcd_revision(self._past.popleft()[1])
        if not target or not await self._is_compactor():
            return
        note = pb.PutRequest(key=self._layout.own("compaction"), value=b"%d" % target)
        await self._connection.ask(PUT, note)
        with contextlib.suppress(Refused):  # somebody was there before
            await self._connection.ask(COMPACT, pb.CompactionRequest(revision=target))

    async def _is_compactor(self) -> bool:
        """Whether it is for this server to let go of history: the first one that asks, for as long as it lives."""
        key = self._layout.own("compactor")
        absent = pb.Compare(target=pb.Compare.CompareTarget.MOD, key=key, mod_revision=0)
        name = json.dumps({"server": self._session.name}).encode()
        put = pb.RequestOp(request_put=pb.PutRequest(key=key, value=name, lease=self._session.lease))
        get = pb.RequestOp(request_range=pb.RangeRequest(key=key))
        answer = await self._connection.ask(TXN, pb.TxnRequest(compare=[absent], success=[put], failure=[get]))
        return answer.succeeded or bytes(answer.responses[0].response_range.kvs[0].value) == name

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
        if hasattr(self, "_session"):
            while self._calls:
                await asyncio.sleep(0.01)
            await self._session.end()
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self._rounds.close()
            await self._connection.close()
        self._released()


def _number(told: Any, before: int) -> int:
    """The number of a change that etcd tells of after that with the number `before`. Raises NotOurs."""
    revision = told.kv.mod_revision
    if told.type == pb.Event.EventType.DELETE:
        return before + 1 if etcd_revision(before) == revision else number(revision, 0)
    return number(revision, position(told.kv.value))


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
