"""The store: checks and numbers writes on the event loop, applies them when durable, serves reads from memory."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from sys import intern

import msgspec

from dray.store.backend import Backend, Contents
from dray.store.errors import Closed, Conflict, Corrupt, Exists, Expired, NotFound, OutOfSpace, StorageError
from dray.store.log import Retention
from dray.store.pipeline import Pipeline, Submission
from dray.store.records import (
    Create,
    Decode,
    Delete,
    Event,
    EventType,
    Finish,
    Key,
    Listing,
    Operation,
    Record,
    Update,
    needs_room,
)
from dray.store.table import Table
from dray.store.watch import Progress, Watcher, WatcherGroup

MAX_KEY_BYTES = 4096
"""Far beyond what Kubernetes allows for names, far below what a frame can hold."""


class Stats(msgspec.Struct, frozen=True):
    """Numbers for metrics, by resource where that makes sense."""

    revision: int
    objects: dict[str, int]
    watchers: dict[str, int]
    events: dict[str, int]
    pending_writes: int
    commits: int
    commit_seconds: float
    used_bytes: int
    quota_bytes: int


class Store:
    """Records with one revision counter, optimistic concurrency, consistent lists and gapless watches.

    Belongs to one event loop: writes are coroutines, everything else is synchronous and in memory.
    A write is visible to reads, lists and watchers only once it is durable, and its writer is told in the same
    turn of the loop. Revisions grow; those of failed writes are left out.
    """

    def __init__(
        self,
        backend: Backend,
        decode: Decode,
        *,
        retention: Retention | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Load everything the backend holds. Raises `Corrupt`."""
        self._backend = backend
        self._decode = decode
        self._retention = retention or Retention()
        self._clock = clock
        self._tables: dict[str, Table] = {}
        self._groups: dict[str, WatcherGroup] = {}
        self._in_flight: dict[Key, Submission] = {}
        self._closed = False
        contents = backend.load()
        self._horizons = contents.horizons
        self._progress = Progress(contents.revision)
        self._assigned = contents.revision
        self._pipeline = Pipeline(backend, contents.revision, self._settle)
        self._load(contents)
        self._prune(self._tables.values())

    # ---- reads ------------------------------------------------------------------------------------------------

    @property
    def revision(self) -> int:
        """The latest revision that reads and watchers can see. Everything up to it is durable."""
        return self._progress.revision

    def get(self, key: Key) -> Record | None:
        """The record at `key`, if there is one."""
        table = self._tables.get(key[0])
        return None if table is None else table.records.get(key)

    def count(self, resource: str) -> int:
        """How many records of a resource there are: the cheapest question, for what there mostly are none of."""
        table = self._tables.get(resource)
        return 0 if table is None else len(table.records)

    def pending(self, key: Key) -> Record | None:
        """What is on its way to disk for `key`, if anything is: nobody can see it yet, and it may still fail."""
        submission = self._in_flight.get(key)
        if submission is None:
            return None
        return next(event.record for event in submission.events if event.record.key == key)

    def list(
        self,
        resource: str,
        namespace: str | None = None,
        *,
        revision: int | None = None,
        after: tuple[str, str] | None = None,
        limit: int | None = None,
    ) -> Listing:
        """The records of a resource (in one namespace), ordered by namespace and name.

        A consistent walk in pages passes the first page's `revision` and the last record's (namespace, name) as
        `after`. Raises `Expired` when that revision has left the history, `FutureRevision` when it is to come.
        """
        current = self._progress.revision
        table = self._table(resource)
        return table.page(current if revision is None else revision, current, namespace, after, limit)

    def watch(self, resource: str, from_revision: int, namespace: str | None = None) -> Watcher:
        """Every change of the resource (in one namespace) with a revision later than `from_revision`.

        Raises `Expired` when some of them are no longer kept.
        """
        self._check_open()
        table = self._table(resource)
        if from_revision < table.log.horizon:
            raise Expired(resource, from_revision, table.log.horizon)
        group = self._groups.get(resource)
        if group is None:
            group = self._groups[resource] = WatcherGroup(resource, table.log, self._progress)
        return group.add(from_revision, namespace)

    def horizon(self, resource: str) -> int:
        """The earliest revision at which the resource can still be listed, or watched from."""
        return self._table(resource).log.horizon

    @property
    def problem(self) -> StorageError | None:
        """Why the last write failed; None if it did not. Writes are tried all the same."""
        return self._pipeline.problem

    @property
    def refusal(self) -> str:
        """Why nothing that needs more room can be written now; empty if it can."""
        return self._backend.refusal()

    @property
    def closed(self) -> bool:
        """Whether writes and watches are refused for good."""
        return self._closed

    def stats(self) -> Stats:
        """Numbers for metrics."""
        return Stats(
            revision=self.revision,
            objects={name: len(table.records) for name, table in self._tables.items()},
            watchers={name: len(group) for name, group in self._groups.items()},
            events={name: len(table.log.events) for name, table in self._tables.items()},
            pending_writes=len(self._in_flight),
            commits=self._pipeline.commits,
            commit_seconds=self._pipeline.commit_seconds,
            used_bytes=self._backend.used_bytes,
            quota_bytes=self._backend.quota_bytes,
        )

    # ---- writes -----------------------------------------------------------------------------------------------

    async def create(self, key: Key, finish: Finish) -> Record:
        """Store a new record. Raises `Exists`, `StorageError`, `Closed`, or what `finish` raises."""
        return await self._write(Create(key, finish))

    async def update(self, key: Key, expected_revision: int, finish: Finish) -> Record:
        """Replace the record at that revision. Raises `NotFound`, `Conflict`, `StorageError`, `Closed`."""
        return await self._write(Update(key, expected_revision, finish))

    async def delete(self, key: Key, expected_revision: int | None, finish: Finish) -> Record:
        """Remove the record, at that revision if one is given; `finish` makes the final state that watchers get."""
        return await self._write(Delete(key, expected_revision, finish))

    async def transact(self, operations: Sequence[Operation]) -> Sequence[Record]:
        """Do all operations or none, with revisions that follow each other. Keys must differ.

        One write per key is in flight at a time. Who meets another's waits for its outcome and is then judged by
        what is stored, so a `Conflict` never tells of a write that could still be lost.
        """
        if not operations:
            return []
        if len({operation.key for operation in operations}) != len(operations):
            raise ValueError("a transaction names a key twice")
        while True:
            self._check_open()
            stored = [self._check(operation) for operation in operations]
            other = self._in_the_way(operations)
            if other is None:
                break
            await other.settled()
        events = []
        for revision, (operation, previous) in enumerate(zip(operations, stored, strict=True), self._assigned + 1):
            events.append(_stage(operation, previous, revision))
            self._check_room(events[-1])
        await self._submit(events)
        return [event.record for event in events]

    async def _write(self, operation: Operation) -> Record:
        """A transaction of one operation, as nearly all are."""
        while True:
            self._check_open()
            previous = self._check(operation)
            other = self._in_flight.get(operation.key)
            if other is None:
                break
            await other.settled()
        event = _stage(operation, previous, self._assigned + 1)
        self._check_room(event)
        await self._submit((event,))
        return event.record

    def _check(self, operation: Operation) -> Record | None:
        """Judge the operation by what is stored, and return that."""
        current = self.get(operation.key)
        if isinstance(operation, Create):
            if current is not None:
                raise Exists(current)
            return None
        if current is None:
            raise NotFound(operation.key)
        expected = operation.expected_revision
        if expected is not None and expected != current.revision:
            raise Conflict(current, expected)
        return current

    def _check_room(self, event: Event) -> None:
        """Raises `OutOfSpace` for a change that needs more room than there is."""
        if needs_room(event) and (why := self._backend.refusal()):
            raise OutOfSpace(why)

    def _in_the_way(self, operations: Iterable[Operation]) -> Submission | None:
        for operation in operations:
            submission = self._in_flight.get(operation.key)
            if submission is not None:
                return submission
        return None

    def _submit(self, events: Sequence[Event]) -> asyncio.Future[None]:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        submission = Submission(events, done)
        self._assigned += len(events)
        for event in events:
            self._in_flight[event.record.key] = submission
        self._pipeline.submit(submission)
        return done

    def _settle(self, submissions: Sequence[Submission], error: StorageError | None) -> None:
        """A batch is on disk, or failed: make it visible, or drop it as if it had never been."""
        touched: dict[str, Table] = {}
        for submission in submissions:
            for event in submission.events:
                record = event.record
                key = record.key
                del self._in_flight[key]
                if error is None:
                    table = touched.get(key[0])
                    if table is None:
                        table = touched[key[0]] = self._table(key[0])
                    table.apply(event)
                    self._progress.revision = record.revision
        self._prune(touched.values())
        for resource in touched:
            if (group := self._groups.get(resource)) is not None:
                group.notify(asyncio.get_running_loop())
        for submission in submissions:
            submission.settle(error)

    # ---- history ----------------------------------------------------------------------------------------------

    async def compact(self) -> None:
        """Drop what is beyond the retention, also for resources without writes, from memory and from disk.

        Raises `StorageError` when the disk refuses; the removal is then tried again later.
        """
        self._check_open()
        self._prune(self._tables.values())
        await self._pipeline.flush()

    def _prune(self, tables: Iterable[Table]) -> None:
        now = self._clock()
        for table in tables:
            dropped = table.log.prune(now)
            if not dropped:
                continue
            self._pipeline.forget(_unneeded(dropped), table.resource, table.log.horizon)
            if (group := self._groups.get(table.resource)) is not None:
                group.cut_off_stalled()

    # ---- life -------------------------------------------------------------------------------------------------

    async def backup(self, path: str | PathLike[str]) -> None:
        """Write a consistent copy of everything acknowledged so far to a new file, while writes go on."""
        self._check_open()
        await asyncio.to_thread(self._backend.backup, path)

    async def close(self) -> None:
        """Refuse new writes, finish those under way, end all watches, release the backend. Idempotent."""
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(StorageError):  # The writers were told; unneeded revisions may stay on disk.
            await self._pipeline.flush()
        self._pipeline.stop()
        for group in self._groups.values():
            group.end_all(Closed("the store is closing"))
        self._backend.close()

    def _check_open(self) -> None:
        if self._closed:
            raise Closed("the store is closed")

    def _table(self, resource: str) -> Table:
        table = self._tables.get(resource)
        if table is None:
            table = self._tables[intern(resource)] = Table(
                intern(resource), self._retention, self._horizons.of(resource)
            )
        return table

    def _load(self, contents: Contents) -> None:
        """Replay the stored changes into tables. Those after a resource's horizon are its history."""
        records: defaultdict[str, dict[Key, Record]] = defaultdict(dict)
        history: defaultdict[str, list[Event]] = defaultdict(list)
        older: defaultdict[str, list[Event]] = defaultdict(list)
        decode, horizon_of = self._decode, contents.horizons.of
        for entry in contents.entries:
            resource = entry.key.resource
            present = records[resource]
            previous = present.get(entry.key)
            record = Record(entry.key, entry.revision, entry.create_revision, entry.data, None, decode)
            if entry.revision <= horizon_of(resource):
                older[resource].append(Event(entry.type, record, previous))
            elif entry.previous_revision != (previous.revision if previous is not None else 0):
                raise Corrupt(self._backend.location, f"revision {entry.previous_revision} of {entry.key} is missing")
            else:
                history[resource].append(Event(entry.type, record, previous))
            if entry.type is EventType.DELETED:
                present.pop(entry.key, None)
            else:
                present[entry.key] = record
        for resource, present in records.items():
            horizon = horizon_of(resource)
            self._tables[resource] = Table.loaded(resource, self._retention, horizon, present, history[resource])
            self._pipeline.forget(_unneeded(older[resource]), resource, horizon)


def _stage(operation: Operation, previous: Record | None, revision: int) -> Event:
    """Number the change and let the writer make object and bytes for that number."""
    obj, data = operation.finish(revision)
    if previous is None:
        resource, namespace, name = operation.key
        # A key that the disk cannot hold must fail its writer here, not the whole batch later.
        if len(f"{resource}{namespace}{name}".encode()) > MAX_KEY_BYTES:
            raise ValueError(f"the key {name[:40]}… of {resource[:40]} is longer than {MAX_KEY_BYTES} bytes")
        key = Key(intern(resource), intern(namespace), name)
        return Event(EventType.ADDED, Record(key, revision, revision, data, obj), None)
    kind = EventType.DELETED if isinstance(operation, Delete) else EventType.MODIFIED
    return Event(kind, Record(previous.key, revision, previous.create_revision, data, obj), previous)


def _unneeded(dropped: Iterable[Event]) -> list[int]:
    """The revisions that only these events held: versions replaced or deleted, and the deletions themselves."""
    revisions: list[int] = []
    for event in dropped:
        if event.previous is not None:
            revisions.append(event.previous.revision)
        if event.type is EventType.DELETED:
            revisions.append(event.record.revision)
    return revisions
