"""What a stranger can make the server hold: headers, bodies, answers that nobody reads. Counted in bytes held."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest

from dray.process.http import MAX_BODY_BYTES, MAX_HEADER_BYTES, Answer, Limits, Listener, Request, Response, Server
from patience import eventually_async

BIG = 8 * 1024 * 1024
MEGABYTE = 1024 * 1024


class Application:
    """Lets in whoever says `let: me-in`, under the name that they give; answers when told to."""

    def __init__(self) -> None:
        self.admitted = 0
        self.answered = 0
        self.bodies: list[bytes] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    def admit(self, request: Request) -> Response | None:
        self.admitted += 1
        request.owner = request.header("user")
        return None if request.header("let") == "me-in" else Response(401, b"{}")

    async def __call__(self, request: Request) -> Answer:
        await self.may_answer.wait()
        self.answered += 1
        self.bodies.append(request.body)
        return Response(200, b"x" * BIG if request.path == "/big" else b"{}")


@contextlib.asynccontextmanager
async def serving(limits: Limits | None = None) -> AsyncIterator[tuple[Application, Server, int]]:
    app = Application()
    server = Server(app, limits or Limits(), app.admit)
    port = await server.listen(Listener("127.0.0.1", 0))
    try:
        yield app, server, port
    finally:
        app.may_answer.set()
        await server.stop(0.1)


@contextlib.asynccontextmanager
async def client(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def flood(writer: asyncio.StreamWriter, piece: bytes, most: int) -> int:
    """Sends pieces until the server ends it; how many bytes it took."""
    sent = 0
    with contextlib.suppress(ConnectionError):
        while sent < most:
            writer.write(piece)
            await writer.drain()
            sent += len(piece)
    return sent


@pytest.mark.parametrize(
    "start",
    [
        b"GET / HTTP/1.1\r\nx-endless: ",
        b"GET /",
        b"GET / HTTP/1.1\r\nx",
        b"POST / HTTP/1.1\r\nlet: me-in\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx-trailer: ",
        b"POST / HTTP/1.1\r\nlet: me-in\r\ntransfer-encoding: chunked\r\n\r\n5;ext=",
    ],
    ids=["value", "path", "name", "trailer", "chunk extension"],
)
async def test_what_never_ends_is_not_held(start: bytes) -> None:
    async with serving() as (_, _server, port), client(port) as (reader, writer):
        writer.write(start)
        await flood(writer, b"a" * 1000, 4 * MAX_HEADER_BYTES)
        assert (await reader.readuntil(b"\r\n")).startswith((b"HTTP/1.1 431", b"HTTP/1.1 400"))


async def test_many_small_trailers_are_counted_and_are_no_headers() -> None:
    async with serving() as (app, _, port), client(port) as (reader, writer):
        head = b"POST / HTTP/1.1\r\nlet: me-in\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
        writer.write(head + b"let: somebody-else\r\nuser: root\r\n\r\n")
        assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 200")
        assert app.bodies == [b"{}"]
    async with serving() as (_, _server, port), client(port) as (reader, writer):
        writer.write(head)
        await flood(writer, b"a: b\r\n" * 1000, 4 * MAX_HEADER_BYTES)
        assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 431")


async def test_no_body_is_read_before_its_sender_is_let_in() -> None:
    async with serving() as (app, server, port), client(port) as (reader, writer):
        writer.write(b"POST / HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % MAX_BODY_BYTES)
        assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 401")
        await flood(writer, b"a" * 65536, MAX_BODY_BYTES)
        assert server.bodies.total == 0
        assert (app.admitted, app.answered) == (1, 0)


async def test_a_refused_small_body_does_not_cost_the_connection() -> None:
    async with serving() as (app, server, port), client(port) as (reader, writer):
        writer.write(b"POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}GET /next HTTP/1.1\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\n{}")).startswith(b"HTTP/1.1 401")
        assert (await reader.readuntil(b"\r\n\r\n{}")).startswith(b"HTTP/1.1 200")
        assert app.answered == 1
        assert server.bodies.total == 0


async def test_continue_is_for_those_who_are_let_in() -> None:
    async with serving() as (_, _server, port), client(port) as (reader, writer):
        writer.write(b"POST / HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n")
        assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 401")


async def test_bodies_of_one_caller_and_of_all_are_bounded() -> None:
    limits = Limits(all_bodies=5 * MEGABYTE, bodies_of_one=2 * MEGABYTE)
    async with serving(limits) as (app, server, port), contextlib.AsyncExitStack() as stack:
        app.may_answer.clear()

        async def post(user: str) -> asyncio.StreamReader:
            reader, writer = await stack.enter_async_context(client(port))
            head = f"POST / HTTP/1.1\r\nlet: me-in\r\nuser: {user}\r\ncontent-length: {MEGABYTE}\r\n\r\n"
            writer.write(head.encode() + b"a" * MEGABYTE)
            return reader

        first = [await post("greedy") for _ in range(2)]
        await eventually_async(lambda: server.bodies.total == 2 * MEGABYTE)
        third = await post("greedy")
        assert (await third.readuntil(b"\r\n")).startswith(b"HTTP/1.1 429")
        assert b"Retry-After: 1" in await third.readuntil(b"\r\n\r\n")
        others = [await post(name) for name in "abc"]
        await eventually_async(lambda: server.bodies.total == 5 * MEGABYTE)
        assert (await (await post("d")).readuntil(b"\r\n")).startswith(b"HTTP/1.1 429")
        app.may_answer.set()
        for reader in first + others:
            assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 200")
        assert server.bodies.total == 0


async def test_a_body_whose_sender_goes_away_is_let_go() -> None:
    async with serving() as (app, server, port):
        app.may_answer.clear()
        async with client(port) as (_, writer):
            head = b"POST / HTTP/1.1\r\nlet: me-in\r\ncontent-length: 100000\r\n\r\n"
            writer.write(head + b"a" * 100_000 + head + b"a" * 100_000 + head + b"a" * 5000)
            await eventually_async(lambda: server.bodies.total == 205_000)
        await eventually_async(lambda: server.bodies.total <= 200_000)  # what can never be whole goes at once
        app.may_answer.set()
        await eventually_async(lambda: server.bodies.total == 0)


async def test_memory_is_given_back_after_many_large_bodies(monkeypatch: pytest.MonkeyPatch) -> None:
    trims = []
    monkeypatch.setattr("dray.process.memory.trim", lambda: trims.append(1))
    async with serving() as (app, server, port), contextlib.AsyncExitStack() as stack:
        app.may_answer.clear()
        for _ in range(17):
            _, writer = await stack.enter_async_context(client(port))
            writer.write(b"POST / HTTP/1.1\r\nlet: me-in\r\ncontent-length: %d\r\n\r\n" % MEGABYTE + b"a" * MEGABYTE)
        await eventually_async(lambda: server.bodies.total == 17 * MEGABYTE)
        assert trims == []
        app.may_answer.set()
        await eventually_async(lambda: trims)
        assert not server.bodies.left_much()


async def test_answers_wait_for_their_reader() -> None:
    """Sixteen requests for 8 MiB each on a connection that does not read: one answer is made, and it is cut off."""
    async with serving(Limits(stalled_stream_seconds=0.2)) as (app, server, port), client(port) as (_, writer):
        writer.write(b"GET /big HTTP/1.1\r\n\r\n" * 16)
        await eventually_async(lambda: server.connection_count == 1)
        await eventually_async(lambda: server.connection_count == 0)
        assert app.answered == 1


async def test_a_large_answer_arrives_whole() -> None:
    async with serving() as (_, _server, port), client(port) as (reader, writer):
        writer.write(b"GET /big HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        assert await reader.readexactly(BIG) == b"x" * BIG
        assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 200")


async def test_an_idle_connection_ends_when_another_needs_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dray.process.http.server.IDLE_SECONDS", 0.0)
    async with serving(Limits(connections=2)) as (_, server, port), contextlib.AsyncExitStack() as stack:
        for _ in range(2):
            await stack.enter_async_context(client(port))
        await eventually_async(lambda: server._idle)
        reader, writer = await stack.enter_async_context(client(port))
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 200")


def test_a_limit_is_said_in_the_documentation() -> None:
    assert (MAX_HEADER_BYTES, MAX_BODY_BYTES) == (64 * 1024, 3 * MEGABYTE)


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="another C library")
def test_large_blocks_go_back_to_the_system() -> None:
    """In a process of its own: a large block has pages of its own, also after larger ones have come and gone."""
    program = """
import ctypes
from dray.process.memory import LARGE_BLOCK, give_back_large_blocks

class Info(ctypes.Structure):
    _fields_ = [(str(number), ctypes.c_size_t) for number in range(10)]

library = ctypes.CDLL(None)
library.mallinfo2.restype = Info

def bytes_with_pages_of_their_own() -> int:
    return getattr(library.mallinfo2(), "4")

give_back_large_blocks()
larger = bytearray(20_000_000)
del larger
before = bytes_with_pages_of_their_own()
kept = [bytearray(2 * LARGE_BLOCK) for _ in range(10)]
print(bytes_with_pages_of_their_own() - before >= 20 * LARGE_BLOCK)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
