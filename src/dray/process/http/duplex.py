"""Bytes both ways: what is left of a connection once it has stopped to speak HTTP, and what others connect it with."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final, Protocol

from dray.process.tasks import cancel_all

CHUNK: Final = 64 * 1024


class Duplex(Protocol):
    """One end of a connection. Whoever has it, closes it."""

    async def read(self) -> bytes:
        """What has come, at most `CHUNK` bytes; nothing if nothing will. Raises OSError."""
        ...

    async def write(self, data: bytes) -> None:
        """Sends bytes; waits while the other end does not read. Raises OSError if it is gone."""
        ...

    async def write_end(self) -> None:
        """Nothing more will be sent; the other end may still send."""
        ...

    def close(self) -> None:
        """Ends the connection once all is sent."""
        ...


class ConnectionDuplex:
    """A client's connection, after an answer 101. Made by `Connection`."""

    def __init__(self, transport: asyncio.Transport, writable: asyncio.Event, received: bytes) -> None:
        """`received` has come already."""
        self._transport = transport
        self._writable = writable
        self._reader = asyncio.StreamReader(limit=CHUNK)
        self._reader.set_transport(transport)
        self.feed(received)

    def feed(self, data: bytes) -> None:
        """Bytes have come; the transport is told to wait if nobody reads them."""
        if data:
            self._reader.feed_data(data)

    def feed_end(self) -> None:
        """Nothing more will come."""
        self._reader.feed_eof()

    async def read(self) -> bytes:
        """What has come; nothing if nothing will."""
        return await self._reader.read(CHUNK)

    async def write(self, data: bytes) -> None:
        """Sends bytes; waits while the client does not read. Raises ConnectionResetError if it is gone."""
        if self._transport.is_closing():
            raise ConnectionResetError(104, "the client is gone")
        self._transport.write(data)
        await self._writable.wait()

    async def write_end(self) -> None:
        """Over TLS, which knows no half-closed connections, nothing happens: the protocol above says it."""
        if self._transport.can_write_eof():
            self._transport.write_eof()

    def close(self) -> None:
        """Ends the connection once all is sent."""
        self._transport.close()


class SocketDuplex:
    """A connection that this process has made, or a pipe to one of its children."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self) -> bytes:
        """What has come; nothing if nothing will. Raises OSError."""
        return await self._reader.read(CHUNK)

    async def write(self, data: bytes) -> None:
        """Sends bytes; waits while the other end does not read. Raises OSError if it is gone."""
        self._writer.write(data)
        await self._writer.drain()

    async def write_end(self) -> None:
        """Nothing more will be sent."""
        if self._writer.can_write_eof():
            with contextlib.suppress(OSError):
                self._writer.write_eof()

    def close(self) -> None:
        """Ends the connection once all is sent."""
        self._writer.close()


async def relay(one: Duplex, other: Duplex) -> None:
    """Carries bytes both ways until both ends have ended, or one is gone; then both are closed."""
    tasks = [asyncio.ensure_future(_carry(one, other)), asyncio.ensure_future(_carry(other, one))]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            with contextlib.suppress(OSError):
                task.result()
    finally:
        await cancel_all(tasks)
        one.close()
        other.close()


async def _carry(source: Duplex, target: Duplex) -> None:
    while data := await source.read():
        await target.write(data)
    await target.write_end()
