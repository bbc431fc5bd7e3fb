"""What a connection writes: answers whole, in slices or as streams, at the pace of a client that reads."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Final

from dray.process.http.messages import LongResponse, Response, Stream, head_bytes
from dray.process.http.turns import SharedTurns

SLICE = 256 * 1024
"""So much of a large answer is written before looking whether the client reads."""
PIECES: Final = 64
PIECE_BYTES: Final = 16 * 1024
"""To encrypt and write this much, or anything smaller, takes about 25 microseconds. A turn of the loop has `PIECES`."""

turns: Final = SharedTurns(PIECES, PIECE_BYTES)
"""Whose part of something long, or whose news, is written next."""

log = logging.getLogger(__name__)


class Writing:
    """One end of a connection that can be written to."""

    def __init__(self, patience: float) -> None:
        """A client that does not read for `patience` seconds loses its connection."""
        self._patience = patience
        self._transport: asyncio.Transport | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._closing = False
        self.owner = ""
        """Whose requests come, as far as is known: whoever sent the last one; before it, an address."""

    def _write(self, data: bytes | memoryview) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def _write_small(self, response: Response, close: bool = False) -> None:
        """Writes an answer in one piece."""
        self._write(_head(response, close) + response.body)

    async def _send(self, response: Response, close: bool, no_body: bool, old: bool) -> None:
        """Writes an answer, a large one in slices; waits for a client that does not read, but not for ever.

        `old` for HTTP/1.0, which has no chunks: an answer of which nobody knows how long it is ends the connection.
        """
        if isinstance(response, LongResponse) and response.parts is not None:
            await self._send_parts(response, response.parts, close, chunked=not old)
        elif no_body:
            self._write(_head(response, close))
        elif len(response.body) <= SLICE:
            self._write_small(response, close)
        else:
            self._write(_head(response, close))
            if not await self._write_slices(response.body):
                return
        if not self._writable.is_set():
            await self._is_read()

    async def _send_parts(self, response: Response, parts: AsyncIterator[bytes], close: bool, *, chunked: bool) -> None:
        """Writes parts as they are made, each when it is its turn."""
        framing = "Transfer-Encoding: chunked" if chunked else "Connection: close"
        self._write(head_bytes(response.code, response.content_type, response.headers, framing, close and chunked))
        try:
            async for part in parts:
                await turns.next(self.owner, len(part))
                await self._write_chunk(part, chunked)
                if self._closing:
                    return
            self._write(b"0\r\n\r\n" if chunked else b"")
        except Exception:
            log.exception("an answer broke off")
            self.abort()
        finally:
            await parts.aclose()  # type: ignore[attr-defined]  # they are made by a function
            if not chunked:
                self.close()

    async def _send_stream(self, stream: Stream, chunked: bool) -> None:
        """Writes a stream in chunks, or, for HTTP/1.0, which has none, as it is. Its head says that it is the last."""
        framing, end = ("Transfer-Encoding: chunked", b"0\r\n\r\n") if chunked else ("Connection: close", b"")
        self._write(head_bytes(200, stream.content_type, stream.headers, framing, chunked))
        try:
            async for chunk in stream.chunks:
                await self._write_chunk(chunk, chunked)
                if self._closing:
                    return
            self._write(end)
        except asyncio.CancelledError:
            self._write(end)
            raise
        except ConnectionError:  # whoever makes the chunks has lost what they come from
            self.abort()
        except Exception:
            # The client sees a stream that breaks off, and will list and watch again.
            log.exception("a stream broke off")
            self.abort()
        finally:
            stream.ended()
            close_chunks = getattr(stream.chunks, "aclose", None)
            if close_chunks is not None:
                await close_chunks()
            self.close()

    async def _write_chunk(self, chunk: bytes, chunked: bool) -> None:
        """Writes a part of what has no known end, and waits for a client that does not read."""
        if len(chunk) <= SLICE:
            self._write(b"%x\r\n%b\r\n" % (len(chunk), chunk) if chunked else chunk)
        else:
            self._write(b"%x\r\n" % len(chunk) if chunked else b"")
            if await self._write_slices(chunk):
                self._write(b"\r\n" if chunked else b"")
        if not self._writable.is_set():
            await self._is_read()

    async def _write_slices(self, data: bytes) -> bool:
        """Writes something large, each slice when it is its turn; False if the client does not read it."""
        view = memoryview(data)
        for start in range(0, len(view), SLICE):
            part = view[start : start + SLICE]
            await turns.next(self.owner, len(part))
            self._write(part)
            if not self._writable.is_set() and not await self._is_read():
                return False
        return True

    async def _is_read(self) -> bool:
        """Waits until the client has read enough; False if it does not, and the connection is at its end."""
        try:
            async with asyncio.timeout(self._patience):
                await self._writable.wait()
        except TimeoutError:
            self.abort()
        return not self._closing

    def close(self) -> None:
        """Ends the connection once everything written is sent."""
        self._closing = True
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Ends the connection at once."""
        self._closing = True
        if self._transport is not None:
            self._transport.abort()


def _head(response: Response, close: bool) -> bytes:
    framing = f"Content-Length: {len(response.body)}"
    return head_bytes(response.code, response.content_type, response.headers, framing, close)
