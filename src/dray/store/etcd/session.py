"""A server's presence in etcd: a key on a lease, and the fence that makes uncertain writes certain.

Every transaction of a server demands that its key has the revision that the server gave it last. A write whose answer
was lost may still be on its way; once the key is written anew, it cannot happen any more. So who writes the key, and
then has seen everything up to that revision, knows which of its writes are made.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Awaitable, Callable
from typing import Final

import grpc

from dray.store.errors import StorageError, Unreachable
from dray.store.etcd.calls import LEASE_GRANT, LEASE_KEEP_ALIVE, LEASE_REVOKE, PUT, RANGE
from dray.store.etcd.connection import PATIENCE_SECONDS, Connection, Refused
from dray.store.etcd.generated import etcd_pb2 as pb
from dray.store.etcd.layout import Layout

LEASE_SECONDS: Final = 15
RENEW_SECONDS: Final = 4.0

log = logging.getLogger(__name__)


class Session:
    """`epoch` is the revision of the key. `lease` is good for other keys that should go with the server."""

    def __init__(self, connection: Connection, layout: Layout) -> None:
        self.name = secrets.token_hex(8)
        self.key = layout.own("servers", self.name)
        self.epoch = 0
        self.lease = 0
        self.arrived: Callable[[int], Awaitable[None]] | None = None
        """Called when the server has come, or come back, at a revision of etcd, before it writes anything."""
        self._connection = connection
        self._fencing: asyncio.Task[int] | None = None

    async def fence(self) -> int:
        """Write the key anew: what was sent before is made by then, or never. Its revision. Raises Unreachable.

        Whoever asks gets a revision of a write that began after the question.
        """
        while self._fencing is not None:
            await asyncio.wait([self._fencing])
            if self._fencing is not None and self._fencing.done():
                self._fencing = None
        task = self._fencing = asyncio.get_running_loop().create_task(self._write())
        try:
            return await asyncio.shield(task)
        finally:
            if task.done() and self._fencing is task:
                self._fencing = None

    async def renew(self, epoch: int) -> None:
        """Somebody else has removed or replaced the key since `epoch`: make it ours again. Raises Unreachable."""
        if self.epoch == epoch:
            self.lease = 0  # for all that others know, we were gone
            await self.fence()

    async def _write(self) -> int:
        is_new = False
        while True:
            if not self.lease:
                is_new = True
                granted = await self._connection.ask(LEASE_GRANT, pb.LeaseGrantRequest(TTL=LEASE_SECONDS))
                self.lease = granted.ID
            put = pb.PutRequest(key=self.key, value=b"{}", lease=self.lease)
            try:
                answer = await self._connection.ask(PUT, put, PATIENCE_SECONDS)
            except Refused as error:
                if error.code is not grpc.StatusCode.NOT_FOUND:
                    raise
                self.lease = 0  # it has run out while nobody could renew it
                continue
            revision: int = answer.header.revision
            if is_new and self.arrived is not None:
                await self.arrived(revision)
            self.epoch = revision
            return revision

    async def keep(self, renewed: Callable[[], Awaitable[None]]) -> None:
        """Renews the lease until cancelled; `renewed` is called after each try."""
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            try:
                async with asyncio.timeout(RENEW_SECONDS):
                    left = await self._renew_lease()
                if left <= 0:
                    self.lease = 0
                    await self.fence()
            except (TimeoutError, grpc.aio.AioRpcError, StorageError) as error:
                log.debug("the lease was not renewed: %s", error)
                self._connection.move_on()
            with contextlib.suppress(StorageError):  # so that it is known whether etcd answers, although nobody asks
                await self._connection.ask(RANGE, pb.RangeRequest(key=self.key, limit=1))
            await renewed()

    async def _renew_lease(self) -> int:
        async with self._connection.stream(LEASE_KEEP_ALIVE) as call:
            await call.write(pb.LeaseKeepAliveRequest(ID=self.lease))
            answer = await call.read()
            return 0 if answer is grpc.aio.EOF else answer.TTL

    async def end(self) -> None:
        """Give the lease back, and with it all keys that are on it."""
        if self.lease:
            try:
                await self._connection.ask(LEASE_REVOKE, pb.LeaseRevokeRequest(ID=self.lease), 1.0)
            except (Unreachable, Refused):
                return
