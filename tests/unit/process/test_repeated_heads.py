"""Heads that come again are not parsed again: whatever comes, in whatever pieces, means what the parser says."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Any

import pytest

from dray.process.http import Answer, Request, Response, Server
from dray.process.http.connection import Connection
from dray.process.http.repeated_heads import RepeatedHead, Told

ANNA = b"Host: x\r\nAuthorization: Bearer anna\r\n"
BERT = b"Host: x\r\n"
HEADS = (
    b"GET /a HTTP/1.1\r\n" + ANNA + b"\r\n",
    b"GET /b?c=d HTTP/1.1\r\n" + ANNA + b"\r\n",
    b"GET /b HTTP/1.1\r\n" + BERT + b"\r\n",
    b"POST /a HTTP/1.1\r\n" + ANNA + b"Content-Length: 4\r\n\r\nbody",
    b"POST /b HTTP/1.1\r\n" + ANNA + b"Content-Length: 4\r\n\r\nydob",
    b"POST /b HTTP/1.1\r\n" + ANNA + b"Content-Length: 4\r\n\r\n",  # the body comes later
    b"POST /c HTTP/1.1\r\n" + BERT + b"Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
    b"HEAD /a HTTP/1.1\r\n" + ANNA + b"\r\n",
    b"GET /a HTTP/1.1\r\n" + ANNA + b"Connection: keep-alive\r\n\r\n",
    b"GET /a HTTP/1.1\r\n" + ANNA + b"Expect: 100-continue\r\n\r\n",
    b"GET /a HTTP/1.0\r\n" + ANNA + b"\r\n",
    b"GET /refused HTTP/1.1\r\n" + ANNA + b"Content-Length: 4\r\n\r\nbody",
    b"\r\n",
    b"GET /a\x01 HTTP/1.1\r\n" + ANNA + b"\r\n",
    b"POST /x HTTP/1.1\r\nAuthorization: Bearer anna\r\nX-Line: ",  # goes on with what looks like a request
)


class Transport:
    """Keeps what is written."""

    def __init__(self) -> None:
        self.written = b""
        self.is_closed = False

    def write(self, data: bytes) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    abort = write_eof = pause_reading = resume_reading = close

    def get_extra_info(self, _name: str) -> Any:
        return None


async def heard(pieces: Sequence[bytes]) -> tuple[list[tuple[object, ...]], bytes]:
    """What the application is asked, and what the client reads."""
    asked: list[tuple[object, ...]] = []

    async def application(request: Request) -> Answer:
        asked.append((request.method, request.uri, request.path, request.query, request.headers, request.body))
        return Response(200, b"{}")

    def admit(request: Request) -> Response | None:
        request.owner = "anna"
        return Response(403, b"no") if request.path == "/refused" else None

    server = Server(application, admit=admit)
    transport, connection = Transport(), Connection(server)
    connection.connection_made(transport)  # type: ignore[arg-type]  # as much of one as is needed
    for piece in pieces:
        if not transport.is_closed:
            connection.data_received(piece)
        while connection.busy:
            await asyncio.sleep(0)
    assert server.bodies.total == 0 or connection._is_inside
    await server.stop(0)
    return asked, transport.written


@pytest.mark.parametrize("seed", range(40))
async def test_pieces_mean_what_the_parser_says(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    pieces = [rng.choice(HEADS) for _ in range(12)]
    if seed % 2:
        pieces = [half for piece in pieces for half in _cut(rng, piece)]
    with_memory = await heard(pieces)
    monkeypatch.setattr(RepeatedHead, "read", lambda _self, _data: None)
    assert with_memory == await heard(pieces)


def _cut(rng: random.Random, piece: bytes) -> list[bytes]:
    at = rng.randrange(len(piece))
    return [part for part in (piece[:at], piece[at:]) if part]


async def test_the_same_headers_are_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Told | None] = []
    read = RepeatedHead.read

    def noted(self: RepeatedHead, data: bytes) -> Told | None:
        told.append(read(self, data))
        return told[-1]

    monkeypatch.setattr(RepeatedHead, "read", noted)
    asked, _ = await heard([HEADS[0], HEADS[1], HEADS[3], HEADS[4]])
    assert told == [Told("GET", "/b?c=d", b""), None, Told("POST", "/b", b"ydob")]
    assert [(method, uri, body) for method, uri, *_, body in asked] == [
        ("GET", "/a", b""),
        ("GET", "/b?c=d", b""),
        ("POST", "/a", b"body"),
        ("POST", "/b", b"ydob"),
    ]


async def test_the_end_of_one_head_is_not_taken_for_another() -> None:
    """Of somebody else behind the same proxy: their headers would be those of the request before."""
    line = b"GET /b HTTP/1.1\r\nHost: x\r\n\r\n"
    asked, _ = await heard([HEADS[-1], line, line])
    assert [headers for *_, headers, _ in asked] == [
        {"authorization": "Bearer anna", "x-line": "GET /b HTTP/1.1", "host": "x"},
        {"host": "x"},
    ]


async def test_a_refused_body_is_not_held() -> None:
    refused = b"POST /refused HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody"
    asked, written = await heard([refused, refused, refused])
    assert (asked, written.count(b"403 Forbidden")) == ([], 3)
