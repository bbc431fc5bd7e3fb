"""WebSockets, the server's end of them: the handshake, frames, and messages one after the other."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import struct
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from dray.process.http import Duplex, Request
from dray.streams.frame_turns import next_frame

UPGRADE: Final = "websocket"
LONGEST_MESSAGE: Final = 1024 * 1024
LONGEST_CONTROL: Final = 125
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
CONTROL: Final = 8
"""The bit that control frames have."""
_OPCODES: Final = frozenset((CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG))
NORMAL, PROTOCOL_ERROR = 1000, 1002
CLOSE_SECONDS: Final = 2.0

_KEY: Final = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class ProtocolError(OSError):
    """The other end does not speak the protocol."""


class Frame(NamedTuple):
    """A piece of a message, or a control frame."""

    opcode: int
    data: bytes
    final: bool


def is_asked_for(request: Request) -> bool:
    """Whether a request asks for a WebSocket."""
    return UPGRADE in [one.strip().lower() for one in request.header("upgrade").split(",")]


def offered(request: Request) -> tuple[str, ...]:
    """The protocols that the client could speak inside of the WebSocket, the preferred one first."""
    return tuple(one.strip() for one in request.header("sec-websocket-protocol").split(",") if one.strip())


def choose(request: Request, known: Sequence[str]) -> str | None:
    """The first of the client's protocols that is known; None if there is none, and empty if it names none."""
    wanted = offered(request)
    if not wanted:
        return ""
    return next((one for one in wanted if one in known), None)


def accept_headers(request: Request, protocol: str) -> tuple[tuple[str, str], ...] | None:
    """The headers of the answer; None for a request that is not a good one."""
    key = request.header("sec-websocket-key")
    if not key or request.header("sec-websocket-version") != "13":
        return None
    digest = hashlib.sha1(key.encode("latin-1") + _KEY.encode(), usedforsecurity=False).digest()
    headers = (("Sec-WebSocket-Accept", base64.b64encode(digest).decode()),)
    return (*headers, ("Sec-WebSocket-Protocol", protocol)) if protocol else headers


class Frames:
    """Bytes in, frames out: control frames whole, those of messages in pieces as they come.

    So nothing is held of a message but what somebody puts together, and a long one is not unmasked in one go.
    """

    def __init__(self) -> None:
        self._held = bytearray()
        self._is_inside = False
        self._opcode = 0
        self._final = False
        self._mask = b""
        self._left = 0

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames, or pieces of them, that are there now. Raises ProtocolError."""
        held, start = self._held, 0
        held += data
        try:
            while (place := self._begin(start)) is not None:
                start = place
                size = min(self._left, len(held) - start)
                if size < self._left and (not size or self._opcode & CONTROL):
                    return
                yield self._piece(bytes(held[start : start + size]))
                start += size
        finally:
            del held[:start]

    def _piece(self, data: bytes) -> Frame:
        """The next bytes of the frame that has begun."""
        piece, turn = unmask(data, self._mask), len(data) % 4
        self._mask = self._mask[turn:] + self._mask[:turn]
        self._left -= len(data)
        self._is_inside = self._left > 0
        opcode, self._opcode = self._opcode, CONTINUATION
        return Frame(opcode, piece, self._final and not self._is_inside)

    def _begin(self, start: int) -> int | None:
        """Where the bytes of a frame are that begins at a place, or go on there; None if not all of its head is."""
        if self._is_inside:
            return start
        held = self._held
        if len(held) < start + 2:
            return None
        first, second = held[start], held[start + 1]
        length, at = second & 0x7F, start + 2
        if first & 0x70 or not second & 0x80:
            raise ProtocolError("a client's frames are masked, and without extensions")
        if first & 0x0F not in _OPCODES:
            raise ProtocolError("a frame is of no known kind")
        if first & CONTROL and (length > LONGEST_CONTROL or not first & 0x80):
            raise ProtocolError(f"a control frame is whole, and of {LONGEST_CONTROL} bytes at most")
        if length >= 126:
            size, form = (2, ">H") if length == 126 else (8, ">Q")
            if len(held) < at + size:
                return None
            (length,) = struct.unpack_from(form, held, at)
            at += size
        if length > LONGEST_MESSAGE:
            raise ProtocolError("a frame is too long")
        if len(held) < at + 4:
            return None
        self._opcode, self._final, self._left = first & 0x0F, bool(first & 0x80), length
        self._mask, self._is_inside = bytes(held[at : at + 4]), True
        return at + 4


def unmask(data: bytes, mask: bytes) -> bytes:
    """Data with a mask of four bytes taken off, or put on."""
    if not data:
        return b""
    key = (mask * (len(data) // 4 + 1))[: len(data)]
    return (int.from_bytes(data, "little") ^ int.from_bytes(key, "little")).to_bytes(len(data), "little")


def frame_bytes(opcode: int, data: bytes) -> bytes:
    """A whole message of a server as a frame."""
    length = len(data)
    if length < 126:
        return bytes((0x80 | opcode, length)) + data
    if length < 65536:
        return struct.pack(">BBH", 0x80 | opcode, 126, length) + data
    return struct.pack(">BBQ", 0x80 | opcode, 127, length) + data


class WebSocket:
    """An open WebSocket. Messages are received by one, and sent by anybody."""

    def __init__(self, duplex: Duplex) -> None:
        self._duplex = duplex
        self._frames = Frames()
        self._coming: Iterator[Frame] = iter(())
        self._receiving = False
        self._over = asyncio.Event()
        self._closed = False
        self._sending = asyncio.Lock()

    async def receive(self) -> bytes | None:
        """The next message, text or binary; None when the other end has closed. Raises OSError."""
        self._receiving = True
        try:
            message = await self._receive()
            if message is None:
                self._over.set()
            return message
        except OSError:
            self._over.set()
            raise
        finally:
            self._receiving = False

    async def _receive(self) -> bytes | None:
        message, begun = bytearray(), False
        while True:
            frame = await self._frame()
            if frame is None or frame.opcode == CLOSE:
                return None
            if frame.opcode == PING:
                await self._send(PONG, frame.data)
            elif frame.opcode in (TEXT, BINARY, CONTINUATION):
                if (frame.opcode == CONTINUATION) is not begun:
                    raise ProtocolError("a message begins in the middle of another, or without a beginning")
                begun = True
                message += frame.data
                if len(message) > LONGEST_MESSAGE:
                    raise ProtocolError("a message is too long")
                if frame.final:
                    return bytes(message)

    async def send(self, data: bytes, *, text: bool = False) -> None:
        """Sends a message. Raises OSError if the other end is gone."""
        await self._send(TEXT if text else BINARY, data)

    async def close(self, code: int = NORMAL) -> None:
        """Says goodbye, and waits a little for the other end to say so, too: it reads all that was sent before."""
        if self._closed:
            return
        with contextlib.suppress(OSError, TimeoutError):
            await self._send(CLOSE, struct.pack(">H", code))
            self._closed = True
            async with asyncio.timeout(CLOSE_SECONDS):
                if self._receiving:  # whoever does, hears it
                    await self._over.wait()
                while not self._over.is_set() and await self.receive() is not None:
                    pass
        self._closed = True

    async def _send(self, opcode: int, data: bytes) -> None:
        async with self._sending:
            if self._closed:
                raise ConnectionResetError(104, "the WebSocket is closed")
            await self._duplex.write(frame_bytes(opcode, data))

    async def _frame(self) -> Frame | None:
        while (frame := next(self._coming, None)) is None:
            data = await self._duplex.read()
            if not data:
                return None
            self._coming = self._frames.feed(data)  # looked for one by one: a read may hold thousands
        await next_frame(len(frame.data))
        return frame


class WebSocketDuplex:
    """A WebSocket as bytes both ways: what its binary messages hold, one after the other."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._closing: asyncio.Task[None] | None = None

    async def read(self) -> bytes:
        """What has come; nothing if nothing will. Raises OSError."""
        while (message := await self._socket.receive()) is not None:
            if message:
                return message
        return b""

    async def write(self, data: bytes) -> None:
        """Sends bytes. Raises OSError if the other end is gone."""
        await self._socket.send(data)

    async def write_end(self) -> None:
        """A WebSocket ends both ways at once."""
        await self._socket.close()

    def close(self) -> None:
        """Whoever has the connection below ends it."""
