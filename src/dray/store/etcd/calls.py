"""The methods of etcd that dray calls, by their names on the wire."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from google.protobuf.message import Message

from dray.store.etcd.generated import etcd_pb2 as pb


class Method(NamedTuple):
    """One method: its path, and the message that answers."""

    path: str
    answer: Any

    def serialize(self, request: Message) -> bytes:
        """A request as bytes."""
        return request.SerializeToString()

    def deserialize(self, data: bytes) -> Any:
        """The message in an answer."""
        return self.answer.FromString(data)


RANGE: Final = Method("/etcdserverpb.KV/Range", pb.RangeResponse)
PUT: Final = Method("/etcdserverpb.KV/Put", pb.PutResponse)
TXN: Final = Method("/etcdserverpb.KV/Txn", pb.TxnResponse)
COMPACT: Final = Method("/etcdserverpb.KV/Compact", pb.CompactionResponse)
WATCH: Final = Method("/etcdserverpb.Watch/Watch", pb.WatchResponse)
LEASE_GRANT: Final = Method("/etcdserverpb.Lease/LeaseGrant", pb.LeaseGrantResponse)
LEASE_REVOKE: Final = Method("/etcdserverpb.Lease/LeaseRevoke", pb.LeaseRevokeResponse)
LEASE_KEEP_ALIVE: Final = Method("/etcdserverpb.Lease/LeaseKeepAlive", pb.LeaseKeepAliveResponse)
STATUS: Final = Method("/etcdserverpb.Maintenance/Status", pb.StatusResponse)
