"""What every store is to its users: reads and watches from memory, writes as coroutines, whatever engine keeps them.

Tables and event logs are here, once; an engine feeds them in the order of revisions and implements the writes:
`local_store` numbers them itself and has a backend make them durable, `etcd` has them numbered by a cluster of etcd.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heapreplace
from os import PathLike
from sys import intern
from typing import ClassVar

import msgspec

from dray.store.backend import Horizons
from dray.store.errors import Closed, Conflict, Exists, Expired, NotFound, StorageError
from dray.store.log import AT_ONCE, Retention, Total
from dray.store.records import (
    ITSELF,
    Basis,
    Create,
    Decode,
    Delete,
    Event,
    Finish,
    Key,
    Listing,
    Operation,
    Record,
    Update,
)
from dray.store.shares import Shares
from dray.store.sweep import Sweep
from dray.store.table import Table
from dray.store.watch import Progress, Watcher, WatcherGroup


class SharedStats(msgspec.Struct, frozen=True):
    """Numbers of a store that others write to, too."""

    conflicts: int
    """Writes that were judged anew, because somebody else had changed what they were judged by."""
    uncertain: int
    """Transactions whose answer got lost."""
    watch_restarts: int
    leader_changes: int
    """How often another member led than when it was last looked."""
    catch_ups: int
    catch_up_seconds: float


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
    shared: SharedStats | None = None


class Store(ABC):
    """Records with one revision counter, optimistic concurrency, consistent lists and gapless watches.

    Belongs to one event loop: writes are coroutines, everything else is synchronous and in memory.
    A write is visible to reads, lists and watchers only once it is durable, and its writer is told in the same
    turn of the loop. Revisions grow; those of failed writes are left out.
    """

    is_shared: ClassVar[bool] = False
    """Whether others write to the same data, so that what is seen here may be a moment old."""

    def __init__(
        self,
        revision: int,
        horizons: Horizons,
        retention: Retention,
        clock: Callable[[], float],
        shares: Shares,
        decode: Decode,
    ) -> None:
        self._retention = retention
        self._shares = shares
        self._history = Total()
        self._clock = clock
        self._tables: dict[str, Table] = {}
        self._groups: dict[str, WatcherGroup] = {}
        self._closed = False
        self._outdated: set[Key] = set()
        self._horizons = horizons
        self._decode = decode
        self.sweep = Sweep(self._tables, decode)
        """Keeps what nobody writes any more small."""
        self.progress = Progress(revision)
        """How far reads and watchers can see, for whoever asks for `revision` all the time."""

    # ---- reads ------------------------------------------------------------------------------------------------

    @property
    def revision(self) -> int:
        """The latest revision that reads and watchers can see. Everything up to it is durable."""
        return self.progress.revision

    def get(self, key: Key | tuple[str, str, str]) -> Record | None:
        """The record at `key`, if there is one. To look, a plain tuple does as well, and costs less."""
        tables = self._tables
        return tables[key[0]].records.get(key) if key[0] in tables else None  # type: ignore[arg-type]  # equal to one

    def count(self, resource: str) -> int:
        """How many records of a resource there are: the cheapest question, for what there mostly are none of."""
        table = self._tables.get(resource)
        return 0 if table is None else len(table.records)

    @abstractmethod
    def pending(self, key: Key) -> Record | None:
        """What is on its way to disk for `key`, if anything is: nobody can see it yet, and it may still fail."""

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
        current = self.progress.revision
        table = self._table(resource)
        return table.page(current if revision is None else revision, current, namespace, after, limit)

    def check_whole(self) -> None:  # noqa: B027 - nothing is left out where there is one server
        """That nothing is left out of what can be seen here. Raises `StorageError`."""

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
            group = self._groups[resource] = WatcherGroup(resource, table.log, self.progress)
        return group.add(from_revision, namespace)

    def horizon(self, resource: str) -> int:
        """The earliest revision at which the resource can still be listed, or watched from."""
        return self._table(resource).log.horizon

    def is_outdated(self, key: Key) -> bool:
        """Whether the record should be written anew although nothing has changed, because it is kept otherwise now."""
        return key in self._outdated

    @property
    def is_current(self) -> bool:
        """Whether all that was acknowledged anywhere is known to be visible here now: `catch_up` would not wait."""
        return True

    async def catch_up(self) -> int:
        """Waits until everything is visible here that was acknowledged anywhere before; the revision that takes.

        Nothing to wait for where nobody else writes. Raises `Unreachable`.
        """
        return self.progress.revision

    @property
    @abstractmethod
    def problem(self) -> StorageError | None:
        """Why writing does not work now, or failed last; None if it works. Writes are tried all the same."""

    @property
    @abstractmethod
    def refusal(self) -> str:
        """Why nothing that needs more room can be written now; empty if it can."""

    @property
    def closed(self) -> bool:
        """Whether writes and watches are refused for good."""
        return self._closed

    @abstractmethod
    def stats(self) -> Stats:
        """Numbers for metrics."""

    def _stats(
        self,
        *,
        pending_writes: int,
        commits: int,
        commit_seconds: float,
        used_bytes: int,
        quota_bytes: int,
        shared: SharedStats | None = None,
    ) -> Stats:
        """What an engine counts, with what is counted of every one."""
        return Stats(
            revision=self.revision,
            objects={name: len(table.records) for name, table in self._tables.items()},
            watchers={name: len(group) for name, group in self._groups.items()},
            events={name: len(table.log.events) for name, table in self._tables.items()},
            pending_writes=pending_writes,
            commits=commits,
            commit_seconds=commit_seconds,
            used_bytes=used_bytes,
            quota_bytes=quota_bytes,
            shared=shared,
        )

    # ---- writes -----------------------------------------------------------------------------------------------

    async def create(self, key: Key, finish: Finish, basis: Basis = ITSELF) -> Record:
        """Store a new record. Raises `Exists`, `StorageError`, `Closed`, or what `finish` raises."""
        return await self._write(Create(key, finish), basis)

    async def update(self, key: Key, expected_revision: int, finish: Finish, basis: Basis = ITSELF) -> Record:
        """Replace the record at that revision. Raises `NotFound`, `Conflict`, `StorageError`, `Closed`.

        `basis` is what else `finish` judges by. Where one process writes, that is here and now, and nothing is needed.
        """
        return await self._write(Update(key, expected_revision, finish), basis)

    async def delete(self, key: Key, expected_revision: int | None, finish: Finish, basis: Basis = ITSELF) -> Record:
        """Remove the record, at that revision if one is given; `finish` makes the final state, judged by `basis`."""
        return await self._write(Delete(key, expected_revision, finish), basis)

    @abstractmethod
    async def transact(self, operations: Sequence[Operation], basis: Basis = ITSELF) -> Sequence[Record]:
        """Do all operations or none. Keys must differ.

        One write per key is in flight at a time. Who meets another's waits for its outcome and is then judged by
        what is stored, so a `Conflict` never tells of a write that could still be lost.
        """

    @abstractmethod
    async def _write(self, operation: Operation, basis: Basis) -> Record:
        """A transaction of one operation, as nearly all are."""

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

    # ---- life -------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin to follow what others write. Before it, reads show what there was when the store was opened."""
        return

    @abstractmethod
    async def compact(self) -> None:
        """Drop what is beyond the retention. Raises `StorageError`; the removal is then tried again later."""

    @abstractmethod
    async def backup(self, path: str | PathLike[str]) -> None:
        """Write a consistent copy of everything acknowledged so far to a new file, while writes go on."""

    @abstractmethod
    async def close(self) -> None:
        """Refuse new writes, finish those under way, end all watches, release what is held. Idempotent."""

    def _check_open(self) -> None:
        if self._closed:
            raise Closed("the store is closed")

    def _table(self, resource: str) -> Table:
        table = self._tables.get(resource)
        if table is None:
            table = self._tables[intern(resource)] = Table(
                intern(resource), self._retention, self._shares, self._horizons.of(resource), self._history
            )
        return table

    def _applied(self, tables: Iterable[Table], size: int) -> None:
        """Changes of so many bytes are in these tables: what is older may take less room."""
        for table in tables:
            table.log.lighten(self._decode)
        self.sweep.wrote(size, asyncio.get_running_loop().call_soon)

    def _pruned(self, tables: Iterable[Table]) -> Sequence[tuple[Table, Sequence[Event]]]:
        """Let go of history beyond the retention, and of watchers that had not read it; what went, by table."""
        now = self._clock()
        found: Sequence[tuple[Table, Sequence[Event]]]
        found = [(table, dropped) for table in tables if (dropped := table.log.prune(now))]
        if self._history.bytes > self._retention.max_total_bytes:
            found = [*found, *self._halved()]
        for table, _ in found:
            if (group := self._groups.get(table.resource)) is not None:
                group.cut_off_stalled()
        return found

    def _halved(self) -> Sequence[tuple[Table, Sequence[Event]]]:
        """Let go of half of the longest histories until all together are well within what they may hold.

        Who writes to many kinds shortens the past of those first. What goes in one turn of the loop is bounded, too.
        """
        found = []
        enough, count = self._retention.max_total_bytes * 7 // 8, 0
        longest = [(-table.log.held, resource, table) for resource, table in self._tables.items()]
        heapify(longest)
        while self._history.bytes > enough and count < 4 * AT_ONCE:
            _, resource, table = longest[0]
            dropped = table.log.halve()
            count += len(dropped)
            found.append((table, dropped))
            heapreplace(longest, (-table.log.held, resource, table))
        return found
