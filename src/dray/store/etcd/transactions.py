"""Writes as transactions of etcd. Pure: messages in, messages out.

::

    if   the session's key has our epoch                        (see `session`)
    then ┌ if   every key has the revision that was read, every guard the one that was judged by
         │ then put, delete, put the guards                     one write: all of it or none
         └ ...                                                  others of the same turn, each on its own
    else say what the session's key has                         a write that goes alone has its conditions outside

All of a transaction gets one revision. Clients resume a watch after the last revision that they have seen, so two
writes of one resource never share one: who had seen the first alone would miss the second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from dray.store.etcd.generated import etcd_pb2 as pb
from dray.store.pipeline import Submission
from dray.store.records import Event

MOST_OPERATIONS: Final = 100
"""etcd takes 128 by default (`--max-txn-ops`)."""


_MOD: Final = pb.Compare.CompareTarget.MOD


class Change(NamedTuple):
    """One key: the revision that it must have (0: it must not be there), and its new value (None: it goes)."""

    path: bytes
    revision: int
    value: bytes | None


class Write(Submission):
    """Changes that are made together, with those who wait for the outcome.

    `done` gets a result when the write is visible, or when it was not made because something has changed (`lost_at`
    then has the revision up to which one must look to see what).
    """

    __slots__ = ("changes", "gone_at", "guards", "lost_at", "made_at", "resources", "values")

    def __init__(
        self,
        events: Sequence[Event],
        changes: Sequence[Change],
        guards: Mapping[bytes, int],
        done: asyncio.Future[None],
    ) -> None:
        super().__init__(events, done)
        self.changes = changes
        self.guards = guards
        self.resources = frozenset(event.record.key.resource for event in events)
        self.values = {event.record.key: change.value for event, change in zip(events, changes, strict=True)}
        self.made_at = 0
        """The revision that it was made at, once that is known."""
        self.lost_at = 0
        self.gone_at = 0
        """The revision at which what it removes went away, by whomever."""

    @property
    def size(self) -> int:
        """How many operations it takes."""
        return len(self.changes) + len(self.guards)

    def lose(self, revision: int) -> None:
        """It was not made, and will not be."""
        self.lost_at = revision
        self.settle(None)


def group(writes: Iterable[Write]) -> list[list[Write]]:
    """Writes that can share a transaction, in few groups: no two of one resource, none too large."""
    groups: list[list[Write]] = []
    taken: list[set[str]] = []
    sizes: list[int] = []
    first: dict[str, int] = {}
    for write in writes:
        # A resource's next write goes into the group after that of its last one; larger ones go alone.
        at = max((first.get(resource, 0) for resource in write.resources), default=0)
        while at < len(groups) and (taken[at] & write.resources or sizes[at] + write.size > MOST_OPERATIONS):
            at += 1
        if at == len(groups):
            groups.append([])
            taken.append(set())
            sizes.append(0)
        groups[at].append(write)
        taken[at] |= write.resources
        sizes[at] += write.size
        for resource in write.resources:
            first[resource] = at + 1
    return groups


def request(session: bytes, epoch: int, writes: Sequence[Write]) -> pb.TxnRequest:
    """The transaction that makes some writes."""
    compare = [_has(session, epoch)]
    failure = [pb.RequestOp(request_range=pb.RangeRequest(key=session, keys_only=True))]
    if len(writes) == 1:
        one = _of_one(writes[0])
        return pb.TxnRequest(compare=[*compare, *one.compare], success=one.success, failure=failure)
    success = [pb.RequestOp(request_txn=_of_one(write)) for write in writes]
    return pb.TxnRequest(compare=compare, success=success, failure=failure)


def outcomes(answer: pb.TxnResponse, epoch: int, count: int) -> list[bool] | None:
    """Which of so many writes were made; None if the session is not ours any more, and none was."""
    if not answer.succeeded:
        found = answer.responses[0].response_range.kvs
        is_ours = bool(found) and found[0].mod_revision == epoch
        return [False] if count == 1 and is_ours else None
    if count == 1:
        return [True]
    return [response.response_txn.succeeded for response in answer.responses]


def _of_one(write: Write) -> pb.TxnRequest:
    compare = [_has(change.path, change.revision) for change in write.changes]
    compare += [_has(path, revision) for path, revision in write.guards.items()]
    success = [_change(change) for change in write.changes]
    success += [pb.RequestOp(request_put=pb.PutRequest(key=path)) for path in write.guards]
    return pb.TxnRequest(compare=compare, success=success)


def _has(path: bytes, revision: int) -> pb.Compare:
    return pb.Compare(target=_MOD, key=path, mod_revision=revision)  # equal, which is the default


def _change(change: Change) -> pb.RequestOp:
    if change.value is None:
        return pb.RequestOp(request_delete_range=pb.DeleteRangeRequest(key=change.path))
    return pb.RequestOp(request_put=pb.PutRequest(key=change.path, value=change.value))
