"""Whether this is the only server: then all that was acknowledged anywhere is visible here, and nobody asks etcd.

::

    one       claims the key `alone`, if no other server has come since ── asks for it now and then; for half a second
              after a question that was answered with its own name, what is visible here is all there is
    another   writes its presence ── sees that somebody is there ── removes the key ── waits for longer than that
              before it does anything: nobody believes to be alone any more

So what a reader is shown without a question was the latest when it asked, also if this process is stopped and goes on
later. Clocks need not agree; they must not run at speeds that differ by half.
"""

from __future__ import annotations

import asyncio
from asyncio import get_running_loop
from collections.abc import Callable
from typing import Final

from dray.store.etcd.calls import RANGE, TXN
from dray.store.etcd.connection import Connection
from dray.store.etcd.generated import etcd_pb2 as pb
from dray.store.etcd.layout import Layout
from dray.store.etcd.revisions import last_number
from dray.store.etcd.session import Session
from dray.store.etcd.transactions import Range, is_unwritten

BELIEF_SECONDS: Final = 0.5
"""So long after a question it is believed that nobody else has come."""
ASK_AGAIN_SECONDS: Final = BELIEF_SECONDS / 2
"""When so much of that is left, it is asked again."""
JOIN_SECONDS: Final = 0.8
"""So long a server waits that comes to others."""
ASK_SECONDS: Final = 3.0


class Alone:
    """`is_certain` needs no question. Revisions are as `revisions` numbers them."""

    def __init__(self, connection: Connection, session: Session, layout: Layout, ask: Callable[[], None]) -> None:
        """`ask` begins with `latest`, unless that is under way."""
        self._ask = ask
        self._connection = connection
        self._session = session
        self._key = layout.own("alone")
        self._servers = layout.own("servers", "")
        self._there: set[bytes] = set()
        self._until = 0.0
        self._least = 0

    def is_certain(self, revision: int) -> bool:
        """Whether everything that was acknowledged anywhere is visible at a revision. Needs a running loop.

        Every GET comes by here. As long as somebody wants to know, it is asked again before it becomes uncertain.
        """
        if revision < self._least:
            return False
        left = self._until - get_running_loop().time()
        if left < ASK_AGAIN_SECONDS:
            if left <= 0:
                return False
            self._ask()
        return True

    def acknowledged(self, revision: int) -> None:
        """A write of this server was acknowledged, whether or not it is visible here."""
        self._least = max(self._least, revision)

    def take(self, path: bytes, revision: int) -> None:
        """A key of dray's own has another revision of etcd now, 0 if it is gone."""
        if path.startswith(self._servers):
            (self._there.add if revision else self._there.discard)(path)
        elif path == self._key and not revision:
            self._until = 0.0

    def forget(self) -> None:
        """What is there is told anew."""
        self._there.clear()
        self._until = 0.0

    @property
    def has_others(self) -> bool:
        """Whether other servers are seen."""
        return bool(self._there - {self._session.key})

    async def latest(self) -> int:
        """The latest revision: nothing that was acknowledged before the question is later. Raises Unreachable."""
        asked = asyncio.get_running_loop().time()
        answer = await self._connection.ask(RANGE, pb.RangeRequest(key=self._key, limit=1), ASK_SECONDS)
        revision = last_number(answer.header.revision)
        self.acknowledged(revision)
        if answer.kvs and bytes(answer.kvs[0].value) == self._name:
            self._until = max(self._until, asked + BELIEF_SECONDS)
        return revision

    async def claim(self, revision: int) -> None:
        """If nobody else is there at a revision of etcd, which is seen, nor has come since. Raises StorageError."""
        if self.has_others or not self._session.lease:
            return
        nobody_came = is_unwritten(Range(self._servers, self._servers[:-1] + b"0", revision))
        put = pb.PutRequest(key=self._key, value=self._name, lease=self._session.lease)
        request = pb.TxnRequest(compare=[nobody_came], success=[pb.RequestOp(request_put=put)])
        await self._connection.ask(TXN, request)

    async def join(self) -> None:
        """This server's presence is written and seen. Afterwards no other believes to be alone. Raises StorageError."""
        if self.has_others:
            gone = pb.RequestOp(request_delete_range=pb.DeleteRangeRequest(key=self._key))
            await self._connection.ask(TXN, pb.TxnRequest(success=[gone]))
            await asyncio.sleep(JOIN_SECONDS)

    @property
    def _name(self) -> bytes:
        return self._session.name.encode()
