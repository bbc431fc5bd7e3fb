"""Everything that etcd holds, read before the event loop has anything else to do: present state and, with it, a past.

What is loaded is the state at the revision up to which history was let go of; the watch then replays what came after,
so that clients of a server that was started anew can go on where they were.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import grpc

from dray.store.errors import StoreError
from dray.store.etcd.address import OPTIONS, EtcdAddress
from dray.store.etcd.calls import RANGE, STATUS, TXN, Method
from dray.store.etcd.generated import etcd_pb2 as pb
from dray.store.etcd.layout import Layout
from dray.store.etcd.reasons import unreachable

PAGE: Final = 2000
START_SECONDS: Final = 15.0
"""How long a server that starts waits for etcd."""
LONGEST_PAST: Final = 50_000
"""So many revisions are replayed at most; beyond, the past is left out."""


class CannotLoad(StoreError):
    """etcd is not there, refuses, or holds what is not dray's. The message says what to do."""


class Loaded(NamedTuple):
    """The state at a revision. `values` are pairs of key and value with revisions, as etcd has them."""

    revision: int
    values: list[Any]
    version: tuple[int, ...]


class Loader:
    """Blocking calls to whichever member answers."""

    def __init__(self, address: EtcdAddress) -> None:
        """Raises AddressError."""
        self._address = address
        credentials = address.credentials()
        self._channels = [
            grpc.insecure_channel(target, options=OPTIONS)
            if credentials is None
            else grpc.secure_channel(target, credentials, options=OPTIONS)
            for target in address.targets()
        ]

    def call(self, method: Method, request: Any) -> Any:
        """A call that may be made more than once. Raises CannotLoad, or RpcError for a refusal."""
        end = time.monotonic() + START_SECONDS
        problem = ""
        while True:
            for channel in self._channels:
                try:
                    return channel.unary_unary(
                        method.path, request_serializer=method.serialize, response_deserializer=method.deserialize
                    )(request, timeout=5.0)
                except grpc.RpcError as error:
                    if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
                        raise
                    problem = error.details() or error.code().name
            if time.monotonic() > end:
                raise CannotLoad(unreachable(self._address, problem))
            time.sleep(0.2)

    def load(self, layout: Layout, told: int = 0, *, is_latest: bool = False) -> Loaded:
        """Everything under the prefix: with the past since `told` to come, or its latest state. Raises CannotLoad."""
        try:
            status = self.call(STATUS, pb.StatusRequest())
            now = self.call(RANGE, pb.RangeRequest(key=layout.own("compaction")))
            floor = int(now.kvs[0].value) if now.kvs else 0
            if floor and floor >= told and not is_latest and now.header.revision - floor <= LONGEST_PAST:
                try:
                    return Loaded(floor, list(self._values(layout, floor)), _version(status.version))
                except grpc.RpcError as error:
                    if error.code() is not grpc.StatusCode.OUT_OF_RANGE:
                        raise
            revision = self.call(RANGE, pb.RangeRequest(key=layout.own("compaction"))).header.revision
            return Loaded(revision, list(self._values(layout, revision)), _version(status.version))
        except grpc.RpcError as error:
            raise CannotLoad(f"etcd at {self._address} refuses to be read: {error.details()}") from error

    def share(self, key: bytes, value: bytes) -> bytes:
        """What all servers have at a key: what is there, and if nothing is, `value` from now on. Raises CannotLoad."""
        absent = pb.Compare(target=pb.Compare.CompareTarget.MOD, key=key, mod_revision=0)
        put = pb.RequestOp(request_put=pb.PutRequest(key=key, value=value))
        get = pb.RequestOp(request_range=pb.RangeRequest(key=key))
        try:
            answer = self.call(TXN, pb.TxnRequest(compare=[absent], success=[put], failure=[get]))
        except grpc.RpcError as error:
            raise CannotLoad(f"etcd at {self._address} refuses to be written to: {error.details()}") from error
        return value if answer.succeeded else bytes(answer.responses[0].response_range.kvs[0].value)

    def replace(self, key: bytes, old: bytes, new: bytes) -> None:
        """Puts `new` at a key, unless somebody else has replaced `old` there. Raises CannotLoad."""
        put = pb.RequestOp(request_put=pb.PutRequest(key=key, value=new))
        try:
            found = self.call(RANGE, pb.RangeRequest(key=key)).kvs
            if not found or found[0].value != old:
                return
            same = pb.Compare(target=pb.Compare.CompareTarget.MOD, key=key, mod_revision=found[0].mod_revision)
            self.call(TXN, pb.TxnRequest(compare=[same], success=[put]))
        except grpc.RpcError as error:
            raise CannotLoad(f"etcd at {self._address} refuses to be written to: {error.details()}") from error

    def find(self, key: bytes) -> bytes | None:
        """What is at a key. Raises CannotLoad."""
        try:
            found = self.call(RANGE, pb.RangeRequest(key=key)).kvs
        except grpc.RpcError as error:
            raise CannotLoad(f"etcd at {self._address} refuses to be read: {error.details()}") from error
        return bytes(found[0].value) if found else None

    def close(self) -> None:
        """Ends the connections."""
        for channel in self._channels:
            channel.close()

    def _values(self, layout: Layout, revision: int) -> Iterator[Any]:
        """All keys in pages, as they were at one revision."""
        start, end = layout.range
        while True:
            request = pb.RangeRequest(key=start, range_end=end, limit=PAGE, revision=revision)
            page = self.call(RANGE, request)
            yield from page.kvs
            if not page.more or not page.kvs:
                return
            start = bytes(page.kvs[-1].key) + b"\0"


def _version(text: str) -> tuple[int, ...]:
    numbers = text.partition("-")[0].split(".")
    return tuple(int(number) for number in numbers if number.isdigit())
