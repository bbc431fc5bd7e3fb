"""For kubelets that do not speak the newest WebSockets: SPDY with them, what the client wants with the client."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from dray.process.http import Answer, Duplex, Request, Upgrade, relay
from dray.server.kubelets.connection import Conversation
from dray.streams import port_forward, remote_command, spdy, websocket
from dray.streams.sessions import ERRORS, OUTPUT, Session, WantedStreams
from dray.streams.spdy import SpdyConnection, SpdyStream
from dray.streams.websocket import WebSocket, WebSocketDuplex

NEWEST: Final = "v5.channel.k8s.io"
SPDY_COMMAND: Final = (
    ("Connection", "Upgrade"),
    ("Upgrade", spdy.UPGRADE),
    ("X-Stream-Protocol-Version", "v4.channel.k8s.io"),
)
SPDY_PORTS: Final = (
    ("Connection", "Upgrade"),
    ("Upgrade", spdy.UPGRADE),
    ("X-Stream-Protocol-Version", port_forward.PROTOCOL),
)
LONGEST_OUTCOME: Final = 64 * 1024

Open = Callable[[tuple[tuple[str, str], ...]], Awaitable[Conversation]]
"""Asks the kubelet with these headers. Raises ApiError unless it agrees."""


def is_newest_command(request: Request) -> bool:
    """Whether a client wants exec or attach as older kubelets do not have it."""
    return websocket.is_asked_for(request) and NEWEST in websocket.offered(request)


def is_tunnel(request: Request) -> bool:
    """Whether a client wants ports as older kubelets do not have it."""
    return websocket.is_asked_for(request) and port_forward.TUNNEL in websocket.offered(request)


async def command(request: Request, wanted: WantedStreams, ask: Open) -> Answer:
    """The answer to a request for exec or attach. Raises ApiError."""
    conversation = await ask(SPDY_COMMAND)

    async def serve(session: Session) -> None:
        await _translate(session, wanted, SpdyConnection(conversation.duplex(), client=True))

    return _closing(remote_command.answer(request, wanted, serve), conversation)


async def tunnel(request: Request, ask: Open) -> Answer:
    """The answer to a request for ports. Raises ApiError."""
    headers = websocket.accept_headers(request, port_forward.TUNNEL)
    if headers is None:
        return remote_command.refusal("not a WebSocket handshake of version 13")
    conversation = await ask(SPDY_PORTS)

    async def converse(duplex: Duplex) -> None:
        await relay(WebSocketDuplex(WebSocket(duplex)), conversation.duplex())

    return _closing(Upgrade(websocket.UPGRADE, converse, headers), conversation)


def _closing(answer: Answer, conversation: Conversation) -> Answer:
    """The connection to the kubelet ends with the answer."""
    if isinstance(answer, Upgrade):
        converse = answer.converse

        async def whole(duplex: Duplex) -> None:
            try:
                await converse(duplex)
            finally:
                conversation.close()

        answer.converse = whole
    else:
        conversation.close()
    return answer


async def _translate(session: Session, wanted: WantedStreams, connection: SpdyConnection) -> None:
    reading = asyncio.ensure_future(connection.run())
    tasks: list[asyncio.Future[Any]] = []
    try:
        outcome = await connection.open({"streamtype": "error"})
        if wanted.stdin:
            tasks.append(asyncio.ensure_future(_type(session, await connection.open({"streamtype": "stdin"}))))
        shown = []
        for name, channel, is_wanted in (("stdout", OUTPUT, wanted.stdout), ("stderr", ERRORS, wanted.stderr)):
            if is_wanted:
                shown.append(
                    asyncio.ensure_future(_show(session, channel, await connection.open({"streamtype": name})))
                )
        if wanted.tty:
            tasks.append(asyncio.ensure_future(_resize(session, await connection.open({"streamtype": "resize"}))))
        tasks += shown
        gone = asyncio.ensure_future(session.gone())
        tasks.append(gone)
        said = asyncio.ensure_future(_read(outcome))
        tasks.append(said)
        await asyncio.wait({gone, said}, return_when=asyncio.FIRST_COMPLETED)
        if said.done():
            await asyncio.gather(*shown, return_exceptions=True)
            await session.finish(_status(said.result()))
    finally:
        for task in (reading, *tasks):
            task.cancel()
        await asyncio.gather(reading, *tasks, return_exceptions=True)


async def _read(stream: SpdyStream) -> bytes:
    """All that comes on a stream."""
    whole = b""
    while data := await stream.read():
        whole = (whole + data)[:LONGEST_OUTCOME]
    return whole


async def _show(session: Session, channel: int, stream: SpdyStream) -> None:
    while data := await stream.read():
        await session.write(channel, data)


async def _type(session: Session, stream: SpdyStream) -> None:
    with contextlib.suppress(OSError):
        while data := await session.read_input():
            await stream.write(data)
    await stream.write_end()


async def _resize(session: Session, stream: SpdyStream) -> None:
    while (size := await session.read_size()) is not None:
        await stream.write(msgspec.json.encode(size))


def _status(said: bytes) -> dict[str, object]:
    """How the kubelet says that it ended; one that says nothing is gone."""
    try:
        return msgspec.json.decode(said, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return remote_command.failed(said.decode(errors="replace") or "the kubelet ended the connection")
