"""A conversation with a client about a command, over a WebSocket or over SPDY: one interface for both."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

import msgspec

from dray.process.tasks import cancel_all
from dray.streams import websocket
from dray.streams.held import Held, Pieces
from dray.streams.spdy import SpdyConnection, SpdyStream
from dray.streams.websocket import WebSocket

INPUT, OUTPUT, ERRORS, OUTCOME, RESIZE = range(5)
CLOSED_CHANNEL: Final = 255
STREAMS_SECONDS: Final = 30.0
GOODBYE_SECONDS: Final = 10.0
PIECE: Final = 32 * 1024

_STREAM_TYPES: Final = {"stdin": INPUT, "stdout": OUTPUT, "stderr": ERRORS, "error": OUTCOME, "resize": RESIZE}


class WantedStreams(msgspec.Struct, frozen=True):
    """Which streams the client wants."""

    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False


class Size(msgspec.Struct, frozen=True, rename={"width": "Width", "height": "Height"}):
    """How large the client's window is, in letters."""

    width: int
    height: int


class Session(Protocol):
    """A conversation with a client."""

    async def read_input(self) -> bytes:
        """What the client types; nothing when that has ended."""
        ...

    async def write(self, channel: int, data: bytes) -> None:
        """Sends output (OUTPUT) or errors (ERRORS). Raises OSError if the client is gone."""
        ...

    async def read_size(self) -> Size | None:
        """The next size of the window; None if there will be none."""
        ...

    async def gone(self) -> None:
        """Returns when the client is."""
        ...

    async def finish(self, outcome: dict[str, Any]) -> None:
        """Says how it ended (a Status), and goodbye."""
        ...


Serve = Callable[[Session], Awaitable[None]]


def _outcome_bytes(outcome: dict[str, Any], protocol: str) -> bytes:
    """Since v4 the outcome is a Status; before, it was a text, and nothing if all went well."""
    if protocol.startswith(("v4", "v5")):
        return msgspec.json.encode(outcome)
    return b"" if outcome["status"] == "Success" else str(outcome.get("message", "")).encode()


class _Inputs:
    """What comes from a client, for those who wait for it."""

    def __init__(self) -> None:
        self._held = Held()
        self.typed = Pieces(self._held)
        self.sizes: asyncio.Queue[Size | None] = asyncio.Queue(maxsize=1)
        """The newest alone."""
        self.over = asyncio.Event()
        self._ended = False

    async def take(self, channel: int, data: bytes) -> None:
        """Waits while nobody reads what is typed."""
        if channel == INPUT and data and not self._ended:
            await self._held.room()
            self.typed.put(data)
        elif channel == RESIZE:
            with contextlib.suppress(msgspec.DecodeError, ValueError):
                self._put_size(msgspec.json.decode(data, type=Size))

    def _put_size(self, size: Size | None) -> None:
        if self.sizes.full():
            self.sizes.get_nowait()
        self.sizes.put_nowait(size)

    def discard(self) -> None:
        """Nobody needs what is typed any more."""
        self._ended = True
        self.typed.take_all()

    def end_input(self) -> None:
        """Nothing more is typed."""
        if not self._ended:
            self._ended = True
            self.typed.put(b"")

    def end(self) -> None:
        """The client is gone."""
        self.over.set()
        self._put_size(None)
        self.end_input()


async def _with_reader(reading: Awaitable[None], serve: Awaitable[None]) -> None:
    """Serves while somebody reads what comes."""
    reader, server = asyncio.ensure_future(reading), asyncio.ensure_future(serve)
    try:
        await server
    finally:
        for task in (reader, server):
            task.cancel()
        await asyncio.gather(reader, server, return_exceptions=True)


class _WithInputs:
    """What both forms of a conversation do with what the client sends."""

    def __init__(self) -> None:
        self._inputs = _Inputs()

    async def read_input(self) -> bytes:
        """What the client types."""
        return await self._inputs.typed.get()

    async def read_size(self) -> Size | None:
        """The next size of the window."""
        return await self._inputs.sizes.get()

    async def gone(self) -> None:
        """Returns when the client is."""
        await self._inputs.over.wait()


class ChannelSession(_WithInputs):
    """A `Session` over a WebSocket."""

    def __init__(self, socket: WebSocket, protocol: str, wanted: WantedStreams) -> None:
        super().__init__()
        self._socket = socket
        self._protocol = protocol
        self._text = "base64" in protocol
        self._wanted = wanted

    async def run(self, serve: Serve) -> None:
        """Serves until that is done. An empty message tells the client that it has begun."""
        first = OUTPUT if self._wanted.stdout else ERRORS if self._wanted.stderr else OUTCOME
        await self._send(first, b"")
        await _with_reader(self._read(), serve(self))

    async def write(self, channel: int, data: bytes) -> None:
        """Sends output."""
        for at in range(0, len(data), PIECE):
            await self._send(channel, data[at : at + PIECE])

    async def finish(self, outcome: dict[str, Any]) -> None:
        """Says how it ended, and goodbye."""
        self._inputs.discard()
        with contextlib.suppress(OSError):
            await self._send(OUTCOME, _outcome_bytes(outcome, self._protocol))
        await self._socket.close()

    async def _read(self) -> None:
        try:
            while (message := await self._socket.receive()) is not None:
                await self._take(message)
        except (OSError, binascii.Error):
            await self._socket.close(websocket.PROTOCOL_ERROR)
        finally:
            self._inputs.end()

    async def _take(self, message: bytes) -> None:
        if not message:
            return
        if self._text:
            channel, data = message[0] - ord("0"), base64.b64decode(message[1:], validate=True)
        else:
            channel, data = message[0], message[1:]
        if channel == CLOSED_CHANNEL and data[:1] == bytes((INPUT,)):
            self._inputs.end_input()
        else:
            await self._inputs.take(channel, data)

    async def _send(self, channel: int, data: bytes) -> None:
        if self._text:
            await self._socket.send(bytes((ord("0") + channel,)) + base64.b64encode(data), text=True)
        else:
            await self._socket.send(bytes((channel,)) + data)


class StreamSession(_WithInputs):
    """A `Session` over SPDY."""

    def __init__(self, connection: SpdyConnection, protocol: str, wanted: WantedStreams) -> None:
        super().__init__()
        self._connection = connection
        self._protocol = protocol
        self._wanted = wanted
        self._streams: dict[int, SpdyStream] = {}
        self._tasks: list[asyncio.Task[None]] = []

    async def run(self, serve: Serve) -> None:
        """Waits for the streams, then serves until that is done. Raises OSError if the client does not open them."""
        await _with_reader(self._read(), self._serve(serve))

    async def write(self, channel: int, data: bytes) -> None:
        """Sends output."""
        stream = self._streams.get(channel)
        if stream is not None:
            await stream.write(data)

    async def finish(self, outcome: dict[str, Any]) -> None:
        """Says how it ended, and lets the client close the connection."""
        self._inputs.discard()
        with contextlib.suppress(OSError):
            stream = self._streams[OUTCOME]
            await stream.write(_outcome_bytes(outcome, self._protocol))
        for stream in self._streams.values():
            await stream.write_end()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GOODBYE_SECONDS):
                await self.gone()

    async def _read(self) -> None:
        try:
            await self._connection.run()
        except OSError:
            return
        finally:
            self._inputs.end()

    async def _serve(self, serve: Serve) -> None:
        try:
            async with asyncio.timeout(STREAMS_SECONDS):
                await self._collect()
        except TimeoutError:
            raise ConnectionAbortedError(103, "the client did not open its streams") from None
        try:
            await serve(self)
        finally:
            await cancel_all(self._tasks)

    async def _collect(self) -> None:
        """Waits until all streams are there that the client said it would open."""
        wanted = self._wanted
        expected = {OUTCOME}
        expected |= {INPUT} if wanted.stdin else set()
        expected |= {OUTPUT} if wanted.stdout else set()
        expected |= {ERRORS} if wanted.stderr else set()
        expected |= {RESIZE} if wanted.tty and self._protocol.startswith(("v3", "v4")) else set()
        while not expected <= self._streams.keys():
            stream = await self._connection.opened.get()
            if stream is None:
                raise ConnectionResetError(104, "the client is gone")
            channel = _STREAM_TYPES.get(stream.headers.get("streamtype", ""))
            if channel is None or channel in self._streams:
                await stream.reset()
                continue
            self._streams[channel] = stream
        for channel in (INPUT, RESIZE):
            if channel in self._streams:
                self._tasks.append(asyncio.ensure_future(self._follow(channel)))

    async def _follow(self, channel: int) -> None:
        stream = self._streams[channel]
        while data := await stream.read():
            newest = data.rstrip().rpartition(b"\n")[2] if channel == RESIZE else data
            await self._inputs.take(channel, newest)
        if channel == INPUT:
            self._inputs.end_input()
