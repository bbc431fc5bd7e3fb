"""etcd's history is let go of by one of the servers, as far back as the retention says."""

from __future__ import annotations

import contextlib
import json
from collections import deque

from dray.store.etcd.calls import COMPACT, PUT, TXN
from dray.store.etcd.connection import Connection, Refused
from dray.store.etcd.generated import etcd_pb2 as pb
from dray.store.etcd.layout import Layout
from dray.store.etcd.revisions import etcd_revision
from dray.store.etcd.session import Session


class Compaction:
    """Remembers which revision was how long ago."""

    def __init__(self, connection: Connection, session: Session, layout: Layout, max_age: float) -> None:
        self._connection = connection
        self._session = session
        self._layout = layout
        self._max_age = max_age
        self._past: deque[tuple[float, int]] = deque()

    async def look(self, now: float, revision: int) -> None:
        """It is `revision` now. What is too old goes, if it is this server's turn. Raises StorageError."""
        self._past.append((now, revision))
        target = 0
        while self._past and now - self._past[0][0] >= self._max_age:
            target = etcd_revision(self._past.popleft()[1])
        if not target or not await self._is_ours():
            return
        note = pb.PutRequest(key=self._layout.own("compaction"), value=b"%d" % target)
        await self._connection.ask(PUT, note)
        with contextlib.suppress(Refused):  # somebody was there before
            await self._connection.ask(COMPACT, pb.CompactionRequest(revision=target))

    async def _is_ours(self) -> bool:
        """Whether it is for this server to let go of history: the first one that asks, for as long as it lives."""
        if not self._session.lease:
            return False  # a key on no lease would stay when this server has gone, and nobody's turn would come again
        key = self._layout.own("compactor")
        absent = pb.Compare(target=pb.Compare.CompareTarget.MOD, key=key, mod_revision=0)
        name = json.dumps({"server": self._session.name}).encode()
        put = pb.RequestOp(request_put=pb.PutRequest(key=key, value=name, lease=self._session.lease))
        get = pb.RequestOp(request_range=pb.RangeRequest(key=key))
        answer = await self._connection.ask(TXN, pb.TxnRequest(compare=[absent], success=[put], failure=[get]))
        return answer.succeeded or bytes(answer.responses[0].response_range.kvs[0].value) == name
