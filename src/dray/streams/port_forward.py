"""Ports of a pod, for clients elsewhere: each connection to one of them is a pair of streams, for data and for errors.

SPDY        pairs as many as the client opens, tied together by a header; also inside of a WebSocket (a tunnel)
WebSocket   the ports of the query, with two channels each
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import Awaitable, Callable, Coroutine
from typing import Final

from dray.process.http import Answer, Duplex, Request, Upgrade, relay
from dray.streams import spdy, websocket
from dray.streams.held import Held, Pieces
from dray.streams.remote_command import VERSION_HEADER, refusal
from dray.streams.spdy import SpdyConnection, SpdyStream
from dray.streams.websocket import WebSocket, WebSocketDuplex

PROTOCOL: Final = "portforward.k8s.io"
TUNNEL: Final = "SPDY/3.1+portforward.k8s.io"
CHANNELS: Final = ("v4.channel.k8s.io",)
MOST_PORTS: Final = 64
PAIR_SECONDS: Final = 30.0
MOST_WAITING: Final = 256
"""Streams of a client whose other half has not come."""
MOST_AT_WORK: Final = 512
"""Connections that a client has, also those whose streams it has given up while they were being made."""

Connect = Callable[[int], Awaitable[Duplex]]
"""Connects to a port of the pod. Raises OSError."""


def answer(request: Request, ports: list[str], connect: Connect) -> Answer:
    """The answer to a request for ports; `ports` are those of the query, which only WebSockets have."""
    if websocket.is_asked_for(request):
        if TUNNEL in websocket.offered(request):
            return _tunnel_answer(request, connect)
        return _channel_answer(request, ports, connect)
    if request.header("upgrade").upper() != spdy.UPGRADE:
        return refusal("upgrade request required")
    offers = [one.strip() for one in request.header(VERSION_HEADER).split(",") if one.strip()]
    if offers and PROTOCOL not in offers:
        return refusal(f"none of the stream protocols is known; {PROTOCOL} is", 403)

    async def converse(duplex: Duplex) -> None:
        await Pairs(SpdyConnection(duplex), connect).run()

    return Upgrade(spdy.UPGRADE, converse, (("X-Stream-Protocol-Version", PROTOCOL),))


def _tunnel_answer(request: Request, connect: Connect) -> Answer:
    headers = websocket.accept_headers(request, TUNNEL)
    if headers is None:
        return refusal("not a WebSocket handshake of version 13")

    async def converse(duplex: Duplex) -> None:
        await Pairs(SpdyConnection(WebSocketDuplex(WebSocket(duplex))), connect).run()

    return Upgrade(websocket.UPGRADE, converse, headers)


def _channel_answer(request: Request, ports: list[str], connect: Connect) -> Answer:
    try:
        numbers = [port_number(one) for text in ports for one in text.split(",")]
    except ValueError as error:
        return refusal(str(error))
    if not 0 < len(numbers) <= MOST_PORTS:
        return refusal(f'query parameter "ports" is required, {MOST_PORTS} of them at most')
    protocol = websocket.choose(request, CHANNELS)
    headers = websocket.accept_headers(request, protocol or "")
    if protocol is None or headers is None:
        return refusal(f"not a WebSocket handshake of version 13 for {' or '.join((TUNNEL, *CHANNELS))}")

    async def converse(duplex: Duplex) -> None:
        await Channels(WebSocket(duplex), numbers, connect).run()

    return Upgrade(websocket.UPGRADE, converse, headers)


def port_number(text: str) -> int:
    """A port. Raises ValueError."""
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65536):
        raise ValueError(f"unable to parse {text[:64]!r} as a port")
    return int(text)


class Pairs:
    """The connections of one client over SPDY."""

    def __init__(self, connection: SpdyConnection, connect: Connect) -> None:
        self._connection = connection
        self._connect = connect
        self._waiting: dict[str, tuple[SpdyStream, asyncio.Task[None]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Forwards until the client is gone."""
        reading = asyncio.ensure_future(self._connection.run())
        try:
            async for stream in self._connection.incoming():
                await self._add(stream)
        finally:
            reading.cancel()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(reading, *self._tasks, return_exceptions=True)

    async def _add(self, stream: SpdyStream) -> None:
        kind = stream.headers.get("streamtype", "")
        if kind not in ("data", "error"):
            await stream.reset()
            return
        # Clients from before there were ids open the error stream first, and the data stream right after it.
        pair = stream.headers.get("requestid") or str(stream.number - (2 if kind == "data" else 0))
        waits = self._waiting.pop(pair, None)
        if waits is None:
            if len(self._waiting) >= MOST_WAITING or len(self._tasks) >= MOST_AT_WORK:
                await stream.reset()
            else:
                self._waiting[pair] = (stream, self._start(self._give_up(pair, stream)))
            return
        other, giving_up = waits
        giving_up.cancel()
        if other.headers.get("streamtype") == kind:
            await stream.reset()
            await other.reset()
        else:
            data, errors = (stream, other) if kind == "data" else (other, stream)
            self._start(self._forward(data, errors))

    def _start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _give_up(self, pair: str, stream: SpdyStream) -> None:
        await asyncio.sleep(PAIR_SECONDS)
        del self._waiting[pair]
        await stream.reset()

    async def _forward(self, data: SpdyStream, errors: SpdyStream) -> None:
        try:
            target = await self._connect(port_number(data.headers.get("port", "")))
        except (OSError, ValueError) as error:
            with contextlib.suppress(OSError):
                await errors.write(_why(data.headers.get("port", ""), error))
            await errors.write_end()
            await data.reset()
            return
        await relay(data, target)
        await data.write_end()
        await errors.write_end()
        errors.close()


class Channels:
    """The connections of one client over a WebSocket: one to each port."""

    def __init__(self, socket: WebSocket, ports: list[int], connect: Connect) -> None:
        self._socket = socket
        self._ports = ports
        self._connect = connect
        self._held = Held()
        self._incoming = [Pieces(self._held) for _ in ports]

    async def run(self) -> None:
        """Forwards until the client or all ports are gone."""
        for index, port in enumerate(self._ports):
            for channel in (2 * index, 2 * index + 1):
                await self._send(channel, struct.pack("<H", port))
        reading = asyncio.ensure_future(self._read())
        forwarding = [asyncio.ensure_future(self._forward(index)) for index in range(len(self._ports))]
        try:
            await asyncio.gather(*forwarding)
            await self._socket.close()
        finally:
            for task in (reading, *forwarding):
                task.cancel()
            await asyncio.gather(reading, *forwarding, return_exceptions=True)

    async def _read(self) -> None:
        try:
            while (message := await self._socket.receive()) is not None:
                if len(message) > 1 and message[0] % 2 == 0 and message[0] // 2 < len(self._ports):
                    await self._held.room()
                    self._incoming[message[0] // 2].put(message[1:])
        finally:
            for pieces in self._incoming:
                pieces.put(b"")

    async def _forward(self, index: int) -> None:
        try:
            target = await self._connect(self._ports[index])
        except OSError as error:
            await self._send(2 * index + 1, _why(str(self._ports[index]), error))
            return
        await relay(_Channel(self, index), target)

    async def receive(self, index: int) -> bytes:
        """What came for a port; nothing when the client is gone."""
        return await self._incoming[index].get()

    async def _send(self, channel: int, data: bytes) -> None:
        await self._socket.send(bytes((channel,)) + data)

    async def send_data(self, index: int, data: bytes) -> None:
        """Sends what came from a port."""
        await self._send(2 * index, data)


class _Channel:
    """One port's channel as a `Duplex`."""

    def __init__(self, channels: Channels, index: int) -> None:
        self._channels = channels
        self._index = index

    async def read(self) -> bytes:
        return await self._channels.receive(self._index)

    async def write(self, data: bytes) -> None:
        await self._channels.send_data(self._index, data)

    async def write_end(self) -> None:
        return

    def close(self) -> None:
        return


def _why(port: str, error: Exception) -> bytes:
    what = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
    return f"error forwarding port {port[:64]} to the pod: {what}".encode()
