"""A connection that is given to another protocol: bytes both ways, at its own pace, until either end is done."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from dray.process.http import Answer, Duplex, Listener, Request, Response, Server, SocketDuplex, Upgrade, relay
from dray.process.http.connection import PIECE, Connection
from patience import PATIENCE

REQUEST = b"GET /talk HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: shouting\r\n\r\n"


async def shout(duplex: Duplex) -> None:
    """Says everything again, louder."""
    while data := await duplex.read():
        await duplex.write(data.upper())


async def application(request: Request) -> Answer:
    if request.path == "/talk" and request.header("upgrade") == "shouting":
        return Upgrade("shouting", shout, (("X-Tone", "loud"),))
    return Response(200, b"plain", "text/plain")


@contextlib.asynccontextmanager
async def connected() -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    server = Server(application)
    try:
        port = await server.listen(Listener("127.0.0.1", 0))
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        yield reader, writer
        writer.close()
    finally:
        await server.stop(0)


@pytest.mark.parametrize("eager", [False, True])
async def test_bytes_go_both_ways_after_the_answer(eager: bool) -> None:
    async with connected() as (reader, writer):
        writer.write(REQUEST + (b"early " if eager else b""))
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        assert head.startswith("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: shouting\r\n")
        assert "X-Tone: loud\r\n" in head
        if eager:
            assert await reader.readexactly(6) == b"EARLY "
        for word in (b"one", b"two"):
            writer.write(word)
            assert await reader.readexactly(3) == word.upper()
        writer.write_eof()
        assert await reader.read() == b""


async def test_nobody_has_to_upgrade() -> None:
    async with connected() as (reader, writer):
        writer.write(REQUEST.replace(b"/talk", b"/other"))
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 200 OK")
        assert answer.endswith(b"plain")


async def test_a_client_that_does_not_read_is_waited_for_and_costs_no_memory() -> None:
    async with connected() as (reader, writer):
        writer.write(REQUEST)
        await reader.readuntil(b"\r\n\r\n")
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < 256 * 1024 * 1024:
                writer.write(b"x" * 65536)
                async with asyncio.timeout(0.5):
                    await writer.drain()
                sent += 65536
        assert sent < 64 * 1024 * 1024  # what the buffers of the system take, and no more
        got = 0
        while got < sent:
            got += len(await reader.read(1 << 20))


async def test_a_relay_ends_when_both_ends_have() -> None:
    ends: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends.put_nowait((reader, writer))

    listener = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    pairs = []
    for _ in range(2):
        near = await asyncio.open_connection("127.0.0.1", port)
        pairs.append((near, await ends.get()))
    (left, left_far), (right, right_far) = pairs
    task = asyncio.ensure_future(relay(SocketDuplex(*left_far), SocketDuplex(*right_far)))
    left[1].write(b"question")
    left[1].write_eof()
    assert await right[0].read() == b"question"
    right[1].write(b"answer")
    right[1].close()
    assert await left[0].read() == b"answer"
    async with asyncio.timeout(PATIENCE):
        await task
    listener.close()
    left[1].close()


async def test_what_came_before_the_end_is_read_though_it_waited_for_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over TLS the end may come in the same piece as the rest of what is sent."""
    made: list[Connection] = []
    take = Server.take

    def taken(server: Server, connection: Connection) -> bool:
        made.append(connection)
        return take(server, connection)

    monkeypatch.setattr(Server, "take", taken)
    async with connected() as (reader, writer):
        writer.write(REQUEST)
        await reader.readuntil(b"\r\n\r\n")
        sent = b"x" * (PIECE + 1)
        made[0].data_received(sent)
        made[0].eof_received()
        assert await reader.readexactly(len(sent)) == sent.upper()
        assert await reader.read() == b""
