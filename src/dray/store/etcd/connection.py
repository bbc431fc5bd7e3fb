"""Calls to etcd, to whichever member answers, with failures told apart by what they mean for a write."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any, Final

import grpc
import grpc.aio

from dray.store.errors import OutOfSpace, StorageError, TooLarge, Uncertain, Unreachable
from dray.store.etcd.address import OPTIONS, EtcdAddress
from dray.store.etcd.calls import PUT, RANGE, TXN, WATCH, Method
from dray.store.etcd.layout import Layout
from dray.store.etcd.loading import Loaded, Loader

CALL_SECONDS: Final = 3.0
"""How long one member has for an answer."""
PATIENCE_SECONDS: Final = 8.0
"""How long it is tried, with all members, until whoever waits is told that etcd is away."""
PAUSE_SECONDS: Final = 0.1

_REFUSALS: Final = frozenset(
    (
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
    )
)
"""What etcd answers when it has done nothing and will not."""
_ORDERED: Final = (RANGE, PUT, TXN)
"""Methods that answer with a revision that is not before any that was answered with earlier."""
log = logging.getLogger(__name__)

_NOT_CONNECTED: Final = ("failed to connect", "connections to all backends failing", "Connection refused")


_TOO_LARGE: Final = ("request is too large", "message larger than max")
"""What etcd and gRPC say. Their codes mean other things as well, and there is nothing else to tell them apart by."""


class Refused(StorageError):
    """etcd has said no, and nothing was changed."""

    def __init__(self, message: str, code: Any) -> None:
        super().__init__(message)
        self.code = code

    @property
    def is_compacted(self) -> bool:
        """Whether a revision was asked for that etcd keeps no more. One that is yet to come has the same code."""
        return self.code is grpc.StatusCode.OUT_OF_RANGE and "compacted" in str(self)


def is_too_large(error: Any) -> bool:
    """Whether a call was refused because of its size: by etcd, or by the gRPC in front of it."""
    details = error.details() or ""
    return any(each in details for each in _TOO_LARGE)


class Connection:
    """Channels to the members of a cluster, one of which is used as long as it answers."""

    def __init__(self, address: EtcdAddress) -> None:
        """Needs a running loop. Raises AddressError."""
        self.address = address
        self._targets = address.targets()
        self._credentials = address.credentials()
        self._channels: dict[int, Any] = {}
        self._methods: dict[tuple[int, str], Any] = {}
        self._member = 0
        self.failure = ""
        """Why the last call got no answer; empty if it got one."""
        self._latest = 0
        self._other = ""
        """Why this is not the etcd that it was."""

    async def call(self, method: Method, request: Any, seconds: float = CALL_SECONDS) -> Any:
        """One call to one member. Raises Unreachable, Uncertain, Refused, OutOfSpace or TooLarge."""
        self.check()
        member, before = self._member, self._latest
        try:
            answer = await self._method(member, method)(request, timeout=seconds)
        except grpc.aio.AioRpcError as error:
            raise self._failed(member, error) from None
        self.failure = ""
        if method in _ORDERED:
            self.expect(answer.header.revision, before)
        return answer

    def expect(self, revision: int, before: int = 0) -> None:
        """etcd has said that it is at a revision; when it was asked, it was at `before` at least.

        Raises Uncertain if it has gone back: what is in memory here is not what etcd has, and nothing goes on.
        """
        if revision < before:
            self.disown(f"is at revision {revision} and was at {before}")
            raise Uncertain(self._other)
        self._latest = max(self._latest, revision)

    def disown(self, why: str) -> None:
        """This is not the etcd that it was: nothing goes on."""
        if self._other:
            return
        self._other = self.failure = (
            f"etcd at {self.address} {why}: it was restored from a backup, or its data are lost. "
            "Start this server again"
        )
        log.error("%s", self._other)

    def check(self) -> None:
        """Raises Unreachable if this is not the etcd that it was."""
        if self._other:
            self.failure = self._other
            raise Unreachable(self._other)

    async def send(self, method: Method, request: Any) -> Any:
        """A call that must not be made twice: another member is tried only if this one has not heard of it.

        Raises Unreachable, Uncertain, Refused, OutOfSpace or TooLarge.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + CALL_SECONDS
        while True:
            try:
                return await self.call(method, request)
            except Unreachable:
                if loop.time() + PAUSE_SECONDS >= end:
                    raise
            await asyncio.sleep(PAUSE_SECONDS)

    async def ask(self, method: Method, request: Any, patience: float = PATIENCE_SECONDS) -> Any:
        """A call that may be made more than once, to one member after the other. Raises Unreachable or Refused."""
        loop = asyncio.get_running_loop()
        end = loop.time() + patience
        while True:
            try:
                return await self.call(method, request, min(CALL_SECONDS, max(end - loop.time(), 0.05)))
            except (Unreachable, Uncertain) as error:
                if loop.time() + PAUSE_SECONDS >= end:
                    raise Unreachable(str(error)) from None
            await asyncio.sleep(PAUSE_SECONDS)

    async def load(self, layout: Layout, told: int) -> Loaded:
        """Everything under the prefix, not as it was before a revision, read beside the loop. Raises CannotLoad."""
        loader = Loader(self.address)
        try:
            return await asyncio.to_thread(loader.load, layout, told)
        finally:
            loader.close()

    @contextlib.asynccontextmanager
    async def stream(self, method: Method = WATCH) -> AsyncIterator[Any]:
        """A conversation with the member that is used now, to `write` to and to `read` from."""
        channel = self._channel(self._member)
        call = channel.stream_stream(
            method.path, request_serializer=method.serialize, response_deserializer=method.deserialize
        )()
        try:
            yield call
        finally:
            call.cancel()

    def move_on(self) -> None:
        """Use the next member from now on."""
        self._member = (self._member + 1) % len(self._targets)

    async def close(self) -> None:
        """Ends everything."""
        for channel in self._channels.values():
            await channel.close()
        self._channels.clear()
        self._methods.clear()

    def _failed(self, member: int, error: Any) -> StorageError:
        code, details = error.code(), error.details() or ""
        where = self.address.urls[member]
        if code in _REFUSALS:
            self.failure = ""
            if code is grpc.StatusCode.RESOURCE_EXHAUSTED and "space" in details:
                return OutOfSpace(f"etcd at {where}: {details}. Give it more room (--quota-backend-bytes), or delete.")
            if is_too_large(error):
                return TooLarge(f"etcd at {where}: {details}. Send less, or let etcd take more (--max-request-bytes).")
            return Refused(f"etcd at {where}: {details}", code)
        self.failure = f"etcd at {where} does not answer: {details or code.name}"
        if member == self._member:
            self.move_on()
        if any(text in details for text in _NOT_CONNECTED):
            return Unreachable(self.failure)
        return Uncertain(self.failure)

    def _channel(self, member: int) -> Any:
        channel = self._channels.get(member)
        if channel is None:
            target, credentials = self._targets[member], self._credentials
            if credentials is None:
                channel = grpc.aio.insecure_channel(target, options=OPTIONS)
            else:
                channel = grpc.aio.secure_channel(target, credentials, options=OPTIONS)
            self._channels[member] = channel
        return channel

    def _method(self, member: int, method: Method) -> Any:
        found = self._methods.get((member, method.path))
        if found is None:
            found = self._methods[member, method.path] = self._channel(member).unary_unary(
                method.path, request_serializer=method.serialize, response_deserializer=method.deserialize
            )
        return found
