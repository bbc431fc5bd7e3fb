"""The store of one process: numbers writes on the event loop, applies them when its backend has made them durable."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from os import PathLike

from dray.store.backend import Backend, Contents
from dray.store.errors import Closed, Corrupt, OutOfSpace, StorageError
from dray.store.log import Retention
from dray.store.pipeline import Pipeline, Submission
from dray.store.records import ITSELF, Basis, Decode, Event, EventType, Key, Operation, Record, needs_room
from dray.store.shares import Shares, share_of
from dray.store.staging import stage
from dray.store.store import Stats, Store
from dray.store.table import Table


class LocalStore(Store):
    """A store that nobody else writes to: what it has numbered is the truth."""

    def __init__(
        self,
        backend: Backend,
        decode: Decode,
        *,
        retention: Retention | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Load everything the backend holds. Raises `Corrupt`."""
        contents = backend.load()
        shares = Shares(share_of(backend.quota_bytes))
        super().__init__(contents.revision, contents.horizons, retention or Retention(), clock, shares, decode)
        self._backend = backend
        self._in_flight: dict[Key, Submission] = {}
        self._assigned = contents.revision
        self._pipeline = Pipeline(backend, contents.revision, self._settle)
        self._load(contents)
        self._outdated = backend.outdated
        self._prune(self._tables.values())

    def pending(self, key: Key) -> Record | None:
        """What is on its way to disk for `key`, if anything is: nobody can see it yet, and it may still fail."""
        submission = self._in_flight.get(key)
        if submission is None:
            return None
        return next(event.record for event in submission.events if event.record.key == key)

    @property
    def problem(self) -> StorageError | None:
        """Why the last write failed; None if it did not. Writes are tried all the same."""
        return self._pipeline.problem

    @property
    def refusal(self) -> str:
        """Why nothing that needs more room can be written now; empty if it can."""
        return self._backend.refusal()

    def stats(self) -> Stats:
        """Numbers for metrics."""
        return self._stats(
            pending_writes=len(self._in_flight),
            commits=self._pipeline.commits,
            commit_seconds=self._pipeline.commit_seconds,
            used_bytes=self._backend.used_bytes,
            quota_bytes=self._backend.quota_bytes,
        )

    # ---- writes -----------------------------------------------------------------------------------------------

    async def transact(self, operations: Sequence[Operation], basis: Basis = ITSELF) -> Sequence[Record]:  # noqa: ARG002 - one process
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
            events.append(stage(operation, previous, revision))
            self._check_room(events[-1])
        await self._submit(events)
        return [event.record for event in events]

    async def _write(self, operation: Operation, basis: Basis = ITSELF) -> Record:  # noqa: ARG002 - one process
        """A transaction of one operation, as nearly all are. All that `finish` judges by is here and now."""
        while True:
            self._check_open()
            previous = self._check(operation)
            other = self._in_flight.get(operation.key)
            if other is None:
                break
            await other.settled()
        event = stage(operation, previous, self._assigned + 1)
        self._check_room(event)
        await self._submit((event,))
        return event.record

    def _check_room(self, event: Event) -> None:
        """Raises `OutOfSpace` for a change that needs more room than there is, or than there is a share for."""
        if needs_room(event) and (why := self._backend.refusal()):
            raise OutOfSpace(why)
        self._shares.check(event)

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
        size = 0
        for submission in submissions:
            for event in submission.events:
                record = event.record
                key = record.key
                del self._in_flight[key]
                if error is None:
                    self._outdated.discard(key)
                    table = touched.get(key[0])
                    if table is None:
                        table = touched[key[0]] = self._table(key[0])
                    table.apply(event)
                    size += record.size
                    self.progress.revision = record.revision
        self._applied(touched.values(), size)
        self._prune(touched.values())
        # The writers go first: what they note of their own writes, watchers need not find out.
        for submission in submissions:
            submission.settle(error)
        for resource in touched:
            if (group := self._groups.get(resource)) is not None:
                group.notify(asyncio.get_running_loop())

    # ---- history ----------------------------------------------------------------------------------------------

    async def compact(self) -> None:
        """Drop what is beyond the retention, also for resources without writes, from memory and from disk.

        Raises `StorageError` when the disk refuses; the removal is then tried again later.
        """
        self._check_open()
        for table in list(self._tables.values()):
            while self._prune((table,)):
                await asyncio.sleep(0)
        await self._pipeline.flush()

    def _prune(self, tables: Iterable[Table]) -> bool:
        """Lets go of history, some at a time; whether there was any."""
        found = self._pruned(tables)
        for table, dropped in found:
            self._pipeline.forget(_unneeded(dropped), table.resource, table.log.horizon)
        return bool(found)

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
        self.sweep.close()
        self._backend.close()

    def _load(self, contents: Contents) -> None:
        """Replay the stored changes into tables. Those after a resource's horizon are its history."""
        records: defaultdict[str, dict[Key, Record]] = defaultdict(dict)
        history: defaultdict[str, list[Event]] = defaultdict(list)
        unneeded: defaultdict[str, list[int]] = defaultdict(list)
        decode, size = self._decode, 0
        horizons: dict[str, int] = {}
        for kind, key, revision, create_revision, previous_revision, data in contents.entries:
            resource = key.resource
            horizon = horizons.get(resource)
            if horizon is None:
                horizon = horizons[resource] = contents.horizons.of(resource)
            present = records[resource]
            previous = present.get(key)
            if previous is not None:
                key = previous.key  # of one object there is one
            record = Record(key, revision, create_revision, data, None, decode)
            size += len(data)
            if revision <= horizon:
                unneeded[resource] += _revisions_of(kind, revision, previous)
            elif previous_revision != (previous.revision if previous is not None else 0):
                raise Corrupt(self._backend.location, f"revision {previous_revision} of {key} is missing")
            else:
                history[resource].append(Event(kind, record, previous))
            if kind is EventType.DELETED:
                present.pop(key, None)
            else:
                present[key] = record
        self.sweep.loaded(size)
        for resource, present in records.items():
            horizon = contents.horizons.of(resource)
            table = self._tables[resource] = Table(resource, self._retention, self._shares, horizon, self._history)
            table.load(present, history[resource])
            self._pipeline.forget(unneeded[resource], resource, horizon)


def _unneeded(dropped: Iterable[Event]) -> list[int]:
    """The revisions that only these events held."""
    return [one for event in dropped for one in _revisions_of(event.type, event.record.revision, event.previous)]


def _revisions_of(kind: EventType, revision: int, previous: Record | None) -> list[int]:
    """Those that only an event holds: of a version that was replaced or deleted, and of the deletion itself."""
    replaced = [] if previous is None else [previous.revision]
    return [*replaced, revision] if kind is EventType.DELETED else replaced
