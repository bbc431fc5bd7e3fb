"""What etcd does with requests, without network or disk: keys with revisions, transactions, leases, compaction.

It answers as etcd does and refuses what etcd refuses: a key twice in a transaction, too many operations, a past that is
compacted, a lease that has run out. Watches are told all of a revision at once, in the order of the operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import grpc

from dray.store.etcd.calls import COMPACT, LEASE_GRANT, LEASE_REVOKE, PUT, RANGE, STATUS, TXN, Method
from dray.store.etcd.connection import Refused
from dray.store.etcd.generated import etcd_pb2 as pb

MOST_OPERATIONS = 128

Told = Callable[[list[pb.Event], int], None]
"""Hears of all changes of a revision."""


class Etcd:
    """The state machine. `now` is the time that leases run by."""

    def __init__(self, now: Callable[[], float], version: str) -> None:
        self.revision = 1
        self.compacted = 0
        self.version = version
        self.listeners: list[Told] = []
        self._now = now
        self._keys: dict[bytes, pb.KeyValue] = {}
        self._past: list[tuple[int, list[pb.Event]]] = []
        self._leases: dict[int, tuple[int, float]] = {}
        self._held: dict[bytes, int] = {}
        self._granted = 0

    def do(self, method: Method, request: Any) -> Any:
        """Carries out a call. Raises Refused."""
        self._expire()
        return {
            RANGE: self._range,
            PUT: self._put_alone,
            TXN: self._txn,
            COMPACT: self._compact,
            LEASE_GRANT: self._grant,
            LEASE_REVOKE: self._revoke,
            STATUS: self._status,
        }[method](request)

    def since(self, revision: int) -> list[pb.Event]:
        """All that has changed from a revision on, in order."""
        return [event for number, events in self._past if number >= revision for event in events]

    def values(self) -> list[pb.KeyValue]:
        """Everything that is there."""
        return list(self._keys.values())

    def renew(self, lease: int) -> int:
        """For how long a lease is good now; 0 if it has run out."""
        self._expire()
        if lease not in self._leases:
            return 0
        ttl = self._leases[lease][0]
        self._leases[lease] = (ttl, self._now() + ttl)
        return ttl

    def _header(self) -> pb.ResponseHeader:
        return pb.ResponseHeader(revision=self.revision)

    def _status(self, _request: Any) -> Any:
        return pb.StatusResponse(header=self._header(), version=self.version)

    def _range(self, request: Any) -> Any:
        found = self._keys.get(request.key)
        assert not request.range_end, "nobody asks for that"
        return pb.RangeResponse(header=self._header(), kvs=[] if found is None else [found])

    def _put_alone(self, request: Any) -> Any:
        self._txn(pb.TxnRequest(success=[pb.RequestOp(request_put=request)]))
        return pb.PutResponse(header=self._header())

    def _txn(self, request: Any) -> Any:
        self._check(request, MOST_OPERATIONS)
        keys = list(_written(request))
        if len(set(keys)) != len(keys):
            raise Refused("etcdserver: duplicate key given in txn request", grpc.StatusCode.INVALID_ARGUMENT)
        events: list[pb.Event] = []
        answer = self._apply(request, self._judge(request), events)
        if events:
            self._tell(events)
        answer.header.revision = self.revision
        return answer

    def _check(self, request: Any, most: int) -> None:
        count = max(len(request.compare), len(request.success), len(request.failure))
        if count > most:
            raise Refused("etcdserver: too many operations in txn request", grpc.StatusCode.INVALID_ARGUMENT)
        for operation in (*request.success, *request.failure):
            if operation.HasField("request_txn"):
                self._check(operation.request_txn, most - count)

    def _judge(self, request: Any) -> list[Any]:
        """Which way each transaction inside goes, decided by what was there before any of it."""
        succeeds = all(map(self._holds, request.compare))
        chosen = request.success if succeeds else request.failure
        inside = [self._judge(op.request_txn) if op.HasField("request_txn") else [] for op in chosen]
        return [succeeds, inside]

    def _holds(self, compare: Any) -> bool:
        if not compare.range_end:
            return bool(self._mod(compare.key) == compare.mod_revision)
        assert compare.result == pb.Compare.CompareResult.LESS, "nobody asks for anything else"
        between = [kv for key, kv in self._keys.items() if compare.key <= key < compare.range_end]
        return all(kv.mod_revision < compare.mod_revision for kv in between)

    def _apply(self, request: Any, judged: list[Any], events: list[pb.Event]) -> Any:
        succeeds, inside = judged
        answer = pb.TxnResponse(succeeded=succeeds)
        for operation, way in zip(request.success if succeeds else request.failure, inside, strict=True):
            kind = operation.WhichOneof("request")
            if kind == "request_txn":
                made = pb.ResponseOp(response_txn=self._apply(operation.request_txn, way, events))
            elif kind == "request_put":
                self._put(operation.request_put, events)
                made = pb.ResponseOp(response_put=pb.PutResponse())
            elif kind == "request_delete_range":
                self._delete(operation.request_delete_range.key, events)
                made = pb.ResponseOp(response_delete_range=pb.DeleteRangeResponse())
            else:
                made = pb.ResponseOp(response_range=self._range(operation.request_range))
            answer.responses.append(made)
        return answer

    def _put(self, request: Any, events: list[pb.Event]) -> None:
        if request.lease and request.lease not in self._leases:
            raise Refused("etcdserver: requested lease not found", grpc.StatusCode.NOT_FOUND)
        before, revision = self._keys.get(request.key), self.revision + 1
        kv = pb.KeyValue(
            key=request.key,
            value=request.value,
            mod_revision=revision,
            create_revision=revision if before is None else before.create_revision,
        )
        self._keys[request.key] = kv
        self._held[request.key] = request.lease
        events.append(pb.Event(type=pb.Event.EventType.PUT, kv=kv))

    def _delete(self, key: bytes, events: list[pb.Event]) -> None:
        if self._keys.pop(key, None) is not None:
            self._held.pop(key, None)
            kv = pb.KeyValue(key=key, mod_revision=self.revision + 1)
            events.append(pb.Event(type=pb.Event.EventType.DELETE, kv=kv))

    def _tell(self, events: list[pb.Event]) -> None:
        self.revision += 1
        self._past.append((self.revision, events))
        for listener in list(self.listeners):
            listener(events, self.revision)

    def _compact(self, request: Any) -> Any:
        if request.revision <= self.compacted or request.revision > self.revision:
            raise Refused("etcdserver: mvcc: required revision has been compacted", grpc.StatusCode.OUT_OF_RANGE)
        self.compacted = request.revision
        self._past = [(revision, events) for revision, events in self._past if revision > request.revision]
        return pb.CompactionResponse(header=self._header())

    def _grant(self, request: Any) -> Any:
        self._granted += 1
        self._leases[self._granted] = (request.TTL, self._now() + request.TTL)
        return pb.LeaseGrantResponse(ID=self._granted, TTL=request.TTL)

    def _revoke(self, request: Any) -> Any:
        if self._leases.pop(request.ID, None) is None:
            raise Refused("etcdserver: requested lease not found", grpc.StatusCode.NOT_FOUND)
        self._drop(request.ID)
        return pb.LeaseRevokeResponse()

    def _expire(self) -> None:
        for lease, (_, end) in list(self._leases.items()):
            if end < self._now():
                del self._leases[lease]
                self._drop(lease)

    def _drop(self, lease: int) -> None:
        events: list[pb.Event] = []
        for key in [key for key, holder in self._held.items() if holder == lease]:
            self._delete(key, events)
        if events:
            self._tell(events)

    def _mod(self, key: bytes) -> int:
        found = self._keys.get(key)
        return 0 if found is None else found.mod_revision


def _written(request: Any) -> Iterator[bytes]:
    for operation in request.success:
        kind = operation.WhichOneof("request")
        if kind == "request_txn":
            yield from _written(operation.request_txn)
        elif kind != "request_range":
            yield getattr(operation, kind).key
