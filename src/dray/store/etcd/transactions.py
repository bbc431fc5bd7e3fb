"""Writes as transactions of etcd. Pure: messages in, messages out.

::

    if   the session's key has our epoch                        (see `session`)
    then ┌ if   every key has the revision that was read, every guard the one that was judged by
         │ then put, delete, put the guards                     one write: all of it or none
         └ ...                                                  others of the same turn, each on its own
    else say what the session's key has                         a write that goes alone has its conditions outside

All of a transaction gets one revision of etcd; `revisions` tells how its changes are told apart.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Final, NamedTuple

from dray.store.errors import TooLarge
from dray.store.etcd.generated import etcd_pb2 as pb
from dray.store.etcd.revisions import POSITIONS, marked
from dray.store.pipeline import Submission
from dray.store.records import Event, Key

MOST_OPERATIONS: Final = 100
"""etcd takes 128 by default (`--max-txn-ops`)."""
MOST_BYTES: Final = 1 << 20
"""etcd takes 1.5 MiB by default (`--max-request-bytes`)."""

_MOD: Final = pb.Compare.CompareTarget.MOD


class Change(NamedTuple):
    """One key: the revision that it must have (0: it must not be there), and its new data (None: it goes)."""

    path: bytes
    revision: int
    data: bytes | None


class Range(NamedTuple):
    """Keys of which none may have been written after a revision."""

    start: bytes
    end: bytes
    revision: int


class Write(Submission):
    """Changes that are made together, with those who wait for the outcome.

    `done` gets a result when the write is visible, or when it was not made because something has changed (`lost_at`
    then has the revision up to which one must look to see what).
    """

    __slots__ = (
        "bytes",
        "changes",
        "gone",
        "guards",
        "lost_at",
        "made_at",
        "mark",
        "numbers",
        "ranges",
        "seen",
        "values",
    )

    def __init__(
        self,
        events: Sequence[Event],
        changes: Sequence[Change],
        guards: Mapping[bytes, int],
        mark: bytes,
        done: asyncio.Future[None],
    ) -> None:
        super().__init__(events, done)
        self.changes = changes
        self.guards = guards
        self.mark = mark
        self.bytes = sum(len(change.path) + len(change.data or b"") for change in changes)
        self.values: dict[Key, bytes | None] = {}
        """What etcd is asked to put at each key, since it was asked."""
        self.numbers: dict[Key, int] = {}
        """The number of each change, once etcd has told of it."""
        self.seen: Mapping[bytes, int] = {}
        """The revisions that other keys must have, because it was judged by them."""
        self.ranges: Sequence[Range] = ()
        self.made_at = 0
        """The revision of etcd that it was made at, once that is known."""
        self.lost_at = 0
        self.gone: dict[Key, int] = {}
        """The revision of etcd at which each of what it removes went away, by whomever."""

    @property
    def size(self) -> int:
        """How many conditions it has, which is at least as many as operations."""
        return len(self.changes) + len(self.guards) + len(self.seen) + len(self.ranges)

    @property
    def room(self) -> int:
        """How many operations it takes."""
        return len(self.changes) + len(self.guards)

    @property
    def looks_around(self) -> bool:
        """Whether it is judged by more than what it writes itself."""
        return bool(self.seen or self.ranges)

    def is_judged_by(self, written: Set[bytes]) -> bool:
        """Whether it looks at anything that others are going to write."""
        is_among = any(each.start <= path < each.end for each in self.ranges for path in written)
        return is_among or not written.isdisjoint(self.seen)

    @property
    def only_removes(self) -> bool:
        """Whether it needs no room."""
        return not self.guards and all(change.data is None for change in self.changes)

    @property
    def is_needless(self) -> bool:
        """Whether all that it does is to remove what is gone."""
        return len(self.gone) == len(self.changes)

    def place(self, first: int) -> None:
        """Its changes have positions from `first` on in their transaction."""
        for position, (event, change) in enumerate(zip(self.events, self.changes, strict=True), first):
            self.values[event.record.key] = None if change.data is None else marked(change.data, self.mark, position)

    def lose(self, revision: int) -> None:
        """It was not made, and will not be."""
        self.lost_at = revision
        self.settle(None)


def group(writes: Iterable[Write]) -> list[list[Write]]:
    """Writes in few transactions, in their order, none of them too large.

    etcd judges all of a transaction by what was there before it, so nobody shares one with a write that it looks at.
    """
    groups: list[list[Write]] = []
    operations = size = largest = 0
    written: set[bytes] = set()
    seen: set[bytes] = set()
    ranging: list[Write] = []
    for write in writes:
        own = {change.path for change in write.changes}
        is_apart = (
            (write.looks_around and write.is_judged_by(written))
            or not own.isdisjoint(seen)
            or any(each.is_judged_by(own) for each in ranging)
        )
        # etcd adds the largest of what is inside a transaction to how many there are.
        is_full = not groups or len(groups[-1]) + 1 + max(largest, write.size) > MOST_OPERATIONS
        if is_full or is_apart or operations + write.room > MOST_OPERATIONS or size + write.bytes > MOST_BYTES:
            groups.append([])
            operations = size = largest = 0
            written, seen, ranging = set(), set(), []
        groups[-1].append(write)
        written |= own
        seen.update(write.seen)
        if write.ranges:
            ranging.append(write)
        operations += write.room
        largest = max(largest, write.size)
        size += write.bytes
    return groups


def request(session: bytes, epoch: int, writes: Sequence[Write]) -> pb.TxnRequest:
    """The transaction that makes some writes. Raises TooLarge."""
    first = 0
    for write in writes:
        write.place(first)
        first += len(write.changes)
    if first > POSITIONS:
        raise TooLarge(f"{first} changes at once are more than etcd takes, which is {POSITIONS}")
    made = pb.TxnRequest()
    made.compare.add(target=_MOD, key=session, mod_revision=epoch)  # equal, which is the default
    look = made.failure.add().request_range
    look.key, look.keys_only = session, True
    if len(writes) == 1:
        add(made, writes[0])
    else:
        for write in writes:
            add(made.success.add().request_txn, write)
    return made


def outcomes(answer: pb.TxnResponse, epoch: int, count: int) -> list[bool] | None:
    """Which of so many writes were made; None if the session is not ours any more, and none was."""
    if not answer.succeeded:
        found = answer.responses[0].response_range.kvs
        is_ours = bool(found) and found[0].mod_revision == epoch
        return [False] if count == 1 and is_ours else None
    if count == 1:
        return [True]
    return [response.response_txn.succeeded for response in answer.responses]


def add(made: pb.TxnRequest, write: Write) -> None:
    """Puts what a write demands and does into a transaction. Messages that are made in their place are not copied."""
    compare, success = made.compare, made.success
    for change, value in zip(write.changes, write.values.values(), strict=True):
        compare.add(target=_MOD, key=change.path, mod_revision=change.revision)
        if value is None:
            success.add().request_delete_range.key = change.path
        else:
            put = success.add().request_put
            put.key, put.value = change.path, value
    for path, revision in write.guards.items():
        compare.add(target=_MOD, key=path, mod_revision=revision)
        success.add().request_put.key = path
    for path, revision in write.seen.items():
        compare.add(target=_MOD, key=path, mod_revision=revision)
    compare.extend(map(is_unwritten, write.ranges))


def is_unwritten(keys: Range) -> pb.Compare:
    """That none of some keys was written after a revision."""
    less = pb.Compare.CompareResult.LESS
    return pb.Compare(target=_MOD, result=less, key=keys.start, range_end=keys.end, mod_revision=keys.revision + 1)
