"""What a client may cost: time to send a request, idle connections, connections in all, streams that nobody reads."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from dray.process.http import Answer, Limits, Listener, Request, Response, Server, Stream
from patience import LOOK_SECONDS, PATIENCE, eventually_async


async def endless(_request: Request) -> AsyncIterator[bytes]:
    while True:
        yield b"x" * 65536
        await asyncio.sleep(0)


_begun: list[str] = []


async def answer(request: Request) -> Answer:
    _begun.append(request.path)
    if request.path == "/slow":
        await asyncio.sleep(0.3)
    if request.path == "/stream":
        return Stream(endless(request))
    return Response(200, b"{}")


@contextlib.asynccontextmanager
async def http_server(limits: Limits) -> AsyncIterator[tuple[Server, int]]:
    server = Server(answer, limits)
    port = await server.listen(Listener("127.0.0.1", 0))
    try:
        yield server, port
    finally:
        for writer in _writers:
            writer.close()
        _writers.clear()
        await server.stop(1.0)


_writers: list[asyncio.StreamWriter] = []


async def connect(port: int, data: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    _writers.append(writer)
    writer.write(data)
    await writer.drain()
    return reader, writer


async def ended(reader: asyncio.StreamReader) -> bool:
    """Whether the server ends the connection soon."""
    try:
        async with asyncio.timeout(PATIENCE):
            await reader.read()
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True


async def test_headers_that_come_too_slowly_end_the_connection() -> None:
    async with http_server(Limits(header_seconds=0.1)) as (server, port):
        readers = [(await connect(port, b"GET / HTTP/1.1\r\nX-Slow: "))[0] for _ in range(50)]
        assert all([await ended(reader) for reader in readers])
        assert server.connection_count == 0


async def test_a_body_that_comes_too_slowly_ends_the_connection() -> None:
    async with http_server(Limits(body_seconds=0.1)) as (_server, port):
        reader, _ = await connect(port, b"POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\nabc")
        assert await ended(reader)


async def test_idle_connections_are_ended() -> None:
    async with http_server(Limits(idle_seconds=0.1)) as (_server, port):
        reader, _ = await connect(port, b"GET / HTTP/1.1\r\n\r\n")
        assert (await reader.readuntil(b"{}")).startswith(b"HTTP/1.1 200")
        assert await ended(reader)


async def test_a_request_that_takes_long_to_answer_is_not_idle() -> None:
    async with http_server(Limits(idle_seconds=0.1, body_seconds=0.1)) as (_server, port):
        reader, _ = await connect(port, b"GET /slow HTTP/1.1\r\n\r\n")
        assert (await reader.readuntil(b"{}")).startswith(b"HTTP/1.1 200")


async def test_too_many_connections_are_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dray.process.http.places.SHARE", 1.0)  # as if each had another address
    async with http_server(Limits(connections=3)) as (server, port):
        kept = [await connect(port, b"") for _ in range(3)]
        await eventually_async(lambda: server.connection_count == 3)
        reader, _ = await connect(port, b"")
        assert (await reader.read()).startswith(b"HTTP/1.1 503")
        kept[0][1].close()
        await eventually_async(lambda: server.connection_count == 2)
        reader, _ = await connect(port, b"GET / HTTP/1.1\r\n\r\n")
        assert (await reader.readuntil(b"{}")).startswith(b"HTTP/1.1 200")


async def test_a_stream_that_nobody_reads_is_cut_off() -> None:
    async with http_server(Limits(stalled_stream_seconds=0.1)) as (server, port):
        _, writer = await connect(port, b"GET /stream HTTP/1.1\r\n\r\n")
        transport = writer.transport
        transport.pause_reading()  # type: ignore[attr-defined]
        async with asyncio.timeout(PATIENCE):
            while server.connection_count:
                await asyncio.sleep(LOOK_SECONDS)


async def test_stopping_lets_requests_finish_and_refuses_new_ones() -> None:
    async with http_server(Limits()) as (server, port):
        _begun.clear()
        reader, _ = await connect(port, b"GET /slow HTTP/1.1\r\n\r\n")
        await eventually_async(lambda: _begun)
        await server.stop(PATIENCE)
        assert (await reader.read()).startswith(b"HTTP/1.1 200")
