"""What the head of a request costs the loop before anybody knows who sends it: every turn is short (issue 14)."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import tracemalloc
from collections.abc import AsyncIterator, Iterator

import pytest

from dray.process.http import MAX_BODY_BYTES, Answer, Limits, Listener, Request, Response, Server
from dray.process.http.head import MOST_PARAMETERS
from loop_turns import LoopTurns
from patience import PATIENCE

LONGEST_TURN = 0.02
"""Seconds of processor time."""
UNHURRIED = Limits(header_seconds=10 * PATIENCE, body_seconds=10 * PATIENCE, idle_seconds=10 * PATIENCE)
"""On a busy machine half a second of work may take a minute, after which a body that comes so slowly is given up."""


@contextlib.asynccontextmanager
async def connected(
    handed: list[Request],
) -> AsyncIterator[tuple[LoopTurns, Server, asyncio.StreamReader, asyncio.StreamWriter]]:
    """A server that keeps what it is asked, and a client of it; on the same loop, whose turns are measured."""

    async def application(request: Request) -> Answer:
        handed.append(request)
        return Response(200, b"{}")

    server = Server(application, UNHURRIED)
    port = await server.listen(Listener("127.0.0.1", 0))
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield LoopTurns(asyncio.get_running_loop()), server, reader, writer
    finally:
        writer.transport.abort()
        await server.stop(0.1)


@pytest.fixture(autouse=True)
def _no_collection_of_garbage() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


HEADS = {
    "headers without letters": (b"GET / HTTP/1.1\r\n" + b"a:\r\n" * 60_000 + b"\r\n", b"431"),
    "many names": (b"GET / HTTP/1.1\r\n" + b"".join(b"%x:\r\n" % n for n in range(60_000)) + b"\r\n", b"431"),
    "parameters": ((b"GET /?" + b"a&" * 31_000 + b" HTTP/1.1\r\n\r\n") * 6, b"400"),
    "as many parameters as may be": (
        (b"GET /?" + b"%61=%62&" * (MOST_PARAMETERS - 1) + b" HTTP/1.1\r\n\r\n") * 6,
        b"200",
    ),
    "escapes in the path": ((b"GET /" + b"%41/" * 15_000 + b" HTTP/1.1\r\n\r\n") * 6, b"200"),
    "escapes in the query": ((b"GET /?a=" + b"%41" * 20_000 + b" HTTP/1.1\r\n\r\n") * 6, b"200"),
    "pipelined": (b"GET / HTTP/1.1\r\n\r\n" * 12_000, b"429"),
    "bodies in pieces of a byte": (
        b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 60_000 + b"0\r\n\r\n",
        b"200",
    ),
}


@pytest.mark.parametrize("name", HEADS)
async def test_no_turn_is_long(name: str) -> None:
    sent, code = HEADS[name]
    handed: list[Request] = []
    async with connected(handed) as (turns, _, reader, writer):
        await asyncio.sleep(0)
        turns.reset()
        writer.write(sent)
        answered = await reader.readuntil(b"\r\n\r\n")
        while code not in answered.partition(b"\r\n")[0]:
            answered = await reader.readuntil(b"\r\n\r\n")  # of those before
        assert turns.longest < LONGEST_TURN


async def test_what_comes_in_many_pieces_is_whole() -> None:
    """A piece in each turn of the loop, and nothing is lost or turned around: large bodies, one right after another."""
    bodies = [bytes((97 + number,)) * (MAX_BODY_BYTES - number) for number in range(3)]
    handed: list[Request] = []
    async with connected(handed) as (_, _server, reader, writer):
        for body in bodies:
            writer.write(b"POST / HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        for _ in bodies:
            assert (await reader.readuntil(b"\r\n\r\n{}")).startswith(b"HTTP/1.1 200")
    assert [request.body for request in handed] == bodies


async def test_a_body_in_small_pieces_takes_no_more_memory_than_it_has_bytes() -> None:
    """Two bytes that are kept as a value of their own would take forty."""
    size = 300_000
    handed: list[Request] = []
    async with connected(handed) as (_, server, _reader, writer):
        chunk = b"2\r\nxy\r\n"
        writer.write(b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n")
        tracemalloc.start()
        try:
            for _ in range(size // 2 // 500):
                writer.write(chunk * 500)
                await writer.drain()
            async with asyncio.timeout(PATIENCE):
                while server.bodies.total < size:
                    assert server.connection_count, "the connection has ended"
                    await asyncio.sleep(0)
            held, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert held < 3 * size


@pytest.mark.parametrize(
    ("head", "ends"),
    [
        (b"GET / HTTP/1.0\r\n", True),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n", False),
        (b"GET / HTTP/1.1\r\n", False),
        (b"GET / HTTP/1.1\r\nConnection: close\r\n", True),
        (b"GET / HTTP/1.1\r\nConnection: x, Close\r\n", True),
    ],
)
async def test_a_connection_ends_when_its_client_expects_it(head: bytes, *, ends: bool) -> None:
    handed: list[Request] = []
    async with connected(handed) as (_, _server, reader, writer):
        writer.write(head + b"\r\n")
        answered = await reader.readuntil(b"\r\n\r\n{}")
        assert (b"Connection: close" in answered) == ends
        if ends:
            assert await reader.read() == b""
