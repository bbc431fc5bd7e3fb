"""Writes on their way to etcd: judged, sent in few transactions, and followed until it is known what became of them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Final, Protocol

from dray.store.encryption import Encryption
from dray.store.errors import Conflict, Exists, NotFound, OutOfSpace, StorageError, Uncertain
from dray.store.etcd import transactions
from dray.store.etcd.calls import TXN
from dray.store.etcd.connection import Connection
from dray.store.etcd.generated import etcd_pb2 as pb
from dray.store.etcd.layout import Layout
from dray.store.etcd.revisions import etcd_revision, last_number, number, position
from dray.store.etcd.session import Session
from dray.store.etcd.transactions import Change, Range, Write
from dray.store.pipeline import GATHERING_TURNS
from dray.store.records import Basis, Event, EventType, Key, Operation, Record
from dray.store.staging import stage

MOST_CALLS: Final = 2
"""So many transactions are on their way at once. Others gather meanwhile: fewer and larger ones cost less."""
LATE_SECONDS: Final = 5.0
"""So long an acknowledged write waits until it is visible here. Then its writer is told all the same."""

log = logging.getLogger(__name__)


class View(Protocol):
    """What is visible here, by which writes are judged."""

    @property
    def revision(self) -> int:
        """Up to where everything is visible."""
        ...

    def get(self, key: Key) -> Record | None:
        """What is stored."""
        ...

    def judge(self, operation: Operation) -> Record | None:
        """What an operation replaces. Raises Exists, NotFound, Conflict, Closed."""
        ...

    def check_room(self, event: Event) -> None:
        """Raises ShareExceeded for a change that needs more room than there is a share for."""
        ...

    def renumbered(self, record: Record, revision: int, create_revision: int) -> Record:
        """A record with another revision."""
        ...

    def acknowledged(self, revision: int) -> None:
        """Somebody is told of a write that is not visible yet."""
        ...

    async def catch_up(self) -> int:
        """Waits until everything is visible that was acknowledged anywhere before. Raises Unreachable."""
        ...

    async def reach(self, revision: int) -> None:
        """Waits until a revision is visible. Raises Unreachable."""
        ...


class Writes:
    """What this server writes. One write of a key, and one of each guard, is on its way at a time."""

    def __init__(
        self,
        view: View,
        connection: Connection,
        session: Session,
        layout: Layout,
        encryption: Encryption,
        run: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._view = view
        self._connection = connection
        self._session = session
        self._layout = layout
        self._encryption = encryption
        self._run = run
        self._guards: dict[bytes, int] = {}
        self._guard_prefix = layout.own("guards", "")
        self._guarded: dict[bytes, Write] = {}
        self._outbox: list[Write] = []
        self._is_scheduled = False
        self._gathered = 0
        """How many were there a turn ago."""
        self._turns = 0
        self._written = 0
        self.in_flight: dict[Key, Write] = {}
        self.calls = 0
        """Transactions that were not answered yet."""
        self.commits = 0
        self.commit_seconds = 0.0
        self.conflicts = 0
        self.lost_answers = 0
        self.refusal = ""
        """Why etcd takes nothing that needs room."""

    def pending(self, key: Key) -> Record | None:
        """What is on its way to etcd for `key`, if anything is."""
        write = self.in_flight.get(key)
        return None if write is None else next(each.record for each in write.events if each.record.key == key)

    async def commit(self, operations: Sequence[Operation], basis: Basis) -> Sequence[Record]:
        """Judged by what is seen here; a refusal only by what is known to be current."""
        is_current = False
        paths = [self._guard_prefix + guard.encode() for guard in basis.guards]
        while True:
            try:
                stored = [self._view.judge(operation) for operation in operations]
            except (Exists, NotFound, Conflict) as refusal:
                if is_current or (isinstance(refusal, Conflict) and refusal.current.revision > refusal.expected):
                    raise
                await self._view.catch_up()
                is_current = True
                continue
            other = self._in_the_way(operations, paths)
            if other is not None:
                with contextlib.suppress(StorageError):
                    await other.settled()
                continue
            write = self._staged(operations, stored, paths, basis)
            await write.done
            if not write.lost_at:
                return [self._result(event, write) for event in write.events]
            await self._view.reach(last_number(write.lost_at))
            is_current = True

    def _result(self, event: Event, write: Write) -> Record:
        """What the writer is told: the record as others see it, or as it was last."""
        record = event.record
        value = write.values[record.key]
        told = write.numbers.get(record.key) or number(write.made_at, 0 if value is None else position(value))
        if event.type is not EventType.DELETED:
            found = self._view.get(record.key)
            if found is not None and found.revision == told:
                return found
        return self._view.renumbered(record, told, record.create_revision or told)

    def _in_the_way(self, operations: Iterable[Operation], guards: Iterable[bytes]) -> Write | None:
        for operation in operations:
            if (write := self.in_flight.get(operation.key)) is not None:
                return write
        return next((self._guarded[path] for path in guards if path in self._guarded), None)

    def _staged(
        self, operations: Sequence[Operation], stored: Sequence[Record | None], guards: list[bytes], basis: Basis
    ) -> Write:
        """The write, on its way."""
        self._written += 1
        mark = f"{self._session.name}-{self._written}".encode()
        events = [stage(operation, previous, 0) for operation, previous in zip(operations, stored, strict=True)]
        for event in events:
            self._view.check_room(event)
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
        if basis.keys or basis.namespaces:
            write.seen = {self._layout.path(key): self._seen(key) for key in basis.keys}
            now = etcd_revision(self._view.revision)
            write.ranges = [Range(*self._layout.namespace(*each), now) for each in basis.namespaces]
        for event in events:
            self.in_flight[event.record.key] = write
        for path in guards:
            self._guarded[path] = write
        self._send(write)
        return write

    def _seen(self, key: Key) -> int:
        """The revision of etcd at which a record is seen here; 0 if it is not."""
        record = self._view.get(key)
        return 0 if record is None else etcd_revision(record.revision)

    def _send(self, write: Write) -> None:
        self._outbox.append(write)
        self._send_soon()

    def _send_soon(self) -> None:
        if not self._is_scheduled and self.calls < MOST_CALLS:
            self._is_scheduled = True
            self._gathered = self._turns = 0
            asyncio.get_running_loop().call_soon(self._send_waiting)

    def _is_gathering(self) -> bool:
        """Whether there are several, and more than a turn ago. One alone waits for nobody."""
        before, self._gathered = self._gathered, len(self._outbox)
        self._turns += 1
        return self._turns <= GATHERING_TURNS and self._gathered > max(before, 1)

    def _send_waiting(self) -> None:
        """At the end of a turn, what has gathered goes, in as few transactions as can be, unless more is coming."""
        if self._is_gathering():
            asyncio.get_running_loop().call_soon(self._send_waiting)
            return
        self._is_scheduled = False
        waiting, self._outbox = self._outbox, []
        for group in transactions.group(waiting):
            if self.calls >= MOST_CALLS:
                self._outbox += group
                continue
            self.calls += 1
            self._run(self._make(group))

    async def _make(self, group: list[Write]) -> None:
        """One transaction, until it is known what became of it."""
        epoch = self._session.epoch
        started = time.perf_counter()
        try:
            answer = await self._connection.send(TXN, transactions.request(self._session.key, epoch, group))
            self.commits += 1
            self.commit_seconds += time.perf_counter() - started
            self.refusal = ""
            await self._take(group, answer, epoch)
        except Uncertain as error:
            self.lost_answers += 1
            await self._find_out(group, error)
        except StorageError as error:
            if isinstance(error, OutOfSpace):
                self.refusal = str(error)
                group = self._send_removals(group)
            self.settle(group, error)
        except Exception as error:  # A bug must fail the writers, not hang them for ever.
            log.exception("a mistake while writing")
            self.settle(group, StorageError(f"cannot write: {error!r}"))
        finally:
            self.calls -= 1
            if self._outbox:
                self._send_soon()

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
                self.settle(group, error)
                return
            for write in group:
                self._send(write)
            return
        revision = answer.header.revision
        for write, is_made in zip(group, made, strict=True):
            if not is_made:
                self.conflicts += 1
                self._forget(write)
                write.lose(revision)
            elif self._is_on_its_way(write):
                write.made_at = revision
        waiting = [write for write in group if self._is_on_its_way(write)]
        if self._view.revision >= last_number(revision):  # seen, perhaps as part of a state that was loaded anew
            self.settle(waiting, None)
        elif waiting:
            asyncio.get_running_loop().call_later(LATE_SECONDS, self._settle_unseen, waiting, last_number(revision))

    def _settle_unseen(self, writes: Iterable[Write], revision: int) -> None:
        """What etcd has made is not visible here for too long."""
        late = [write for write in writes if self._is_on_its_way(write)]
        if late:
            self._view.acknowledged(revision)
            self.settle(late, None)

    async def _find_out(self, group: list[Write], error: Uncertain) -> None:
        """The answer was lost. Behind a fence, what has not been seen was not made, and may be tried anew."""
        try:
            fence = await self._session.fence()
            await self._view.reach(last_number(fence))
        except StorageError:
            self.settle(group, error)
            return
        for write in group:
            if not self._is_on_its_way(write):
                continue
            if write.is_needless:  # that it is gone is what was asked for
                write.made_at = max(write.gone.values())
                self.settle([write], None)
            else:
                self._forget(write)
                write.lose(fence)

    def settle(self, writes: Iterable[Write], error: StorageError | None) -> None:
        """Writes are visible, or failed."""
        for write in writes:
            self._forget(write)
            write.settle(error)

    def settle_all(self, error: StorageError) -> None:
        """Of writes of which it is not known that they were made, nothing more is going to be heard."""
        for write in list({id(each): each for each in self.in_flight.values()}.values()):
            self.settle([write], None if write.made_at else error)

    def _is_on_its_way(self, write: Write) -> bool:
        """Whether it is not known what became of it. That its writer has gone, and waits no more, says nothing."""
        return self.in_flight.get(write.events[0].record.key) is write

    def _forget(self, write: Write) -> None:
        for event in write.events:
            if self.in_flight.get(event.record.key) is write:
                del self.in_flight[event.record.key]
        for path in write.guards:
            if self._guarded.get(path) is write:
                del self._guarded[path]

    # ---- what etcd tells

    def take_guard(self, path: bytes, revision: int) -> None:
        """A key of dray's own has another revision now, 0 if it is gone."""
        if path.startswith(self._guard_prefix):
            self._guards[path] = revision

    def forget_guards(self) -> None:
        """They are told anew."""
        self._guards.clear()

    @staticmethod
    def is_seen(write: Write, key: Key, value: bytes | None, number: int) -> bool:
        """Whether a change is the one that a write makes. Who made a record go away is known from the answer only."""
        revision = etcd_revision(number)
        if value is None:
            if write.values.get(key, b"") is not None:
                return False
            write.gone[key] = revision
            write.numbers[key] = number
            return write.made_at == revision
        if write.values.get(key) != value:
            return False
        write.made_at = revision
        write.numbers[key] = number
        return True
