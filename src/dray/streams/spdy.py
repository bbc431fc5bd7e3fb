"""A SPDY connection: streams that either end opens, each of them bytes both ways.

There is no flow control per stream (clients of Kubernetes have none either): streams that nobody reads hold up the
connection once they have `held.HELD_AT_MOST` bytes together.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

from dray.process.http import Duplex
from dray.streams import spdy_frames as frames
from dray.streams.frame_turns import next_frame
from dray.streams.held import Held, Pieces
from dray.streams.spdy_frames import Decoder, Encoder, Frame, SpdyError

UPGRADE: Final = "SPDY/3.1"
PIECE: Final = 32 * 1024
MOST_STREAMS: Final = 512
REFUSED, CANCELLED = 3, 5


class SpdyStream:
    """One stream. What it is for is in `headers`."""

    def __init__(self, connection: SpdyConnection, number: int, headers: dict[str, str]) -> None:
        self.number = number
        self.headers = headers
        self._connection = connection
        self._pieces = Pieces(connection.held)
        self._ended = False
        self._finished = False

    async def read(self) -> bytes:
        """What has come; nothing if nothing will."""
        while not self._pieces and not self._ended:
            await self._pieces.wait()
        return self._pieces.take_all()

    async def write(self, data: bytes) -> None:
        """Sends bytes. Raises OSError if the other end is gone, or does not want them any more."""
        for at in range(0, len(data), PIECE):
            if self._finished:
                raise BrokenPipeError(32, "the stream has ended")
            await self._connection.send(Frame(frames.DATA, self.number, 0, data[at : at + PIECE]))

    async def write_end(self) -> None:
        """Nothing more will be sent."""
        if not self._finished:
            self._finished = True
            with contextlib.suppress(OSError):
                await self._connection.send(Frame(frames.DATA, self.number, frames.FIN))
            self._connection.forget(self)

    async def reset(self) -> None:
        """Ends the stream both ways: something went wrong."""
        if not self._finished or not self._ended:
            self.close()
            with contextlib.suppress(OSError):
                await self._connection.send(Frame(frames.RST_STREAM, self.number, number=CANCELLED))

    def close(self) -> None:
        """Nobody reads or writes any more; the connection goes on."""
        self._finished = True
        self.end()
        self._pieces.take_all()
        self._connection.forget(self)

    def take(self, data: bytes) -> None:
        """Data has come."""
        if data and not self._ended:
            self._pieces.put(data)

    def end(self, *, both: bool = False) -> None:
        """Nothing more will come, nor be wanted if it ends `both` ways."""
        self._ended = True
        self._finished = self._finished or both
        self._pieces.wake()

    @property
    def is_over(self) -> bool:
        """Whether it has ended both ways."""
        return self._ended and self._finished


class SpdyConnection:
    """One connection. `run` reads it; streams that the other end opens are in `opened`, and None at the end."""

    def __init__(self, duplex: Duplex, *, client: bool = False) -> None:
        self._duplex = duplex
        self._encoder = Encoder()
        self._decoder = Decoder()
        self._streams: dict[int, SpdyStream] = {}
        self._next = 1 if client else 2
        self._sending = asyncio.Lock()
        self._over = False
        self.held = Held()
        """What its streams hold together."""
        self.opened: asyncio.Queue[SpdyStream | None] = asyncio.Queue()

    async def run(self) -> None:
        """Reads until the other end is gone. Raises OSError, SpdyError for one."""
        try:
            while data := await self._duplex.read():
                for frame in self._decoder.feed(data):
                    await self.held.room()
                    await next_frame(len(frame.data))
                    await self._take(frame)
        finally:
            self._over = True
            for stream in list(self._streams.values()):
                stream.end(both=True)
            self.opened.put_nowait(None)

    async def open(self, headers: dict[str, str]) -> SpdyStream:
        """A new stream. Raises OSError."""
        stream = SpdyStream(self, self._next, headers)
        self._next += 2
        self._streams[stream.number] = stream
        await self.send(Frame(frames.SYN_STREAM, stream.number, headers=headers))
        return stream

    async def incoming(self) -> AsyncIterator[SpdyStream]:
        """The streams that the other end opens, until it is gone."""
        while (stream := await self.opened.get()) is not None:
            yield stream

    async def send(self, frame: Frame) -> None:
        """Sends a frame. Raises OSError."""
        async with self._sending:
            if self._over:
                raise ConnectionResetError(104, "the connection is closed")
            await self._duplex.write(self._encoder.encode(frame))

    def forget(self, stream: SpdyStream) -> None:
        """A stream has ended; its number is not used again."""
        if stream.is_over:
            self._streams.pop(stream.number, None)

    async def _take(self, frame: Frame) -> None:
        stream = self._streams.get(frame.stream)
        if frame.type == frames.DATA:
            if stream is not None:
                stream.take(frame.data)
        elif frame.type == frames.SYN_STREAM:
            stream = await self._accept(frame)
        elif frame.type == frames.PING and frame.number % 2 != self._next % 2:
            await self.send(frame)
        elif frame.type == frames.RST_STREAM and stream is not None:
            stream.end(both=True)
            self.forget(stream)
        if stream is not None and frame.flags & frames.FIN and frame.type in _WITH_END:
            stream.end()
            self.forget(stream)

    async def _accept(self, frame: Frame) -> SpdyStream | None:
        if frame.stream in self._streams or frame.stream % 2 == self._next % 2:
            raise SpdyError(f"stream {frame.stream} is not the other end's to open")
        if len(self._streams) >= MOST_STREAMS or self.opened.qsize() >= MOST_STREAMS:
            await self.send(Frame(frames.RST_STREAM, frame.stream, number=REFUSED))
            return None
        stream = self._streams[frame.stream] = SpdyStream(self, frame.stream, frame.headers)
        await self.send(Frame(frames.SYN_REPLY, frame.stream))
        self.opened.put_nowait(stream)
        return stream


_WITH_END: Final = (frames.DATA, frames.SYN_STREAM, frames.SYN_REPLY, frames.HEADERS)
