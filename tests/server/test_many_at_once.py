"""However many connections come at once, or bring something, a turn of the loop has a few of them (issue 14)."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dray.process.http import door
from dray.process.http.connection import Connection
from dray.process.http.reading_turns import AT_ONCE, DIRECTLY
from dray.server.instance import Instance
from live_server import LiveServer
from loop_turns import LoopTurns
from patience import PATIENCE, eventually
from server_process import server_on_thread

COUNT = 100
BODY = b'{"metadata":{"name":"x"},"data":{"a":"%b"}}' % (b"x" * 300_000)


class World(NamedTuple):
    server: LiveServer
    instance: Instance
    loop: asyncio.AbstractEventLoop
    turns: LoopTurns

    @contextlib.contextmanager
    def standing_still(self) -> Iterator[None]:
        """What is sent in this block finds a loop that is busy, so that it has all of it in one turn."""
        stopped, go_on = threading.Event(), threading.Event()

        def stand_still() -> None:
            stopped.set()
            go_on.wait(PATIENCE)

        self.loop.call_soon_threadsafe(stand_still)
        assert stopped.wait(PATIENCE)
        try:
            yield
        finally:
            go_on.set()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with server_on_thread(tmp_path / "state") as (server, instance):
        loop = instance._tasks[0].get_loop()
        yield World(server, instance, loop, LoopTurns(loop))


class Counted:
    """How often something is called in one turn of the loop, at most."""

    def __init__(self, turns: LoopTurns) -> None:
        self.most = 0
        self._turns = turns
        self._turn = self._count = -1

    def note(self) -> None:
        self._count = self._count + 1 if self._turn == self._turns.count else 1
        self._turn = self._turns.count
        self.most = max(self.most, self._count)


def _connect(world: World) -> socket.socket:
    return socket.create_connection((world.server.host, world.server.port), PATIENCE)


def _hello(world: World, plain: socket.socket) -> ssl.SSLSocket:
    """The client's first message, without waiting for what the server says to it."""
    wrapped = world.server.tls.wrap_socket(plain, server_hostname=world.server.host, do_handshake_on_connect=False)
    wrapped.setblocking(False)
    with contextlib.suppress(ssl.SSLWantReadError):
        wrapped.do_handshake()
    return wrapped


def test_handshakes_are_begun_a_few_at_a_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = Counted(world.turns)
    connect = world.loop.connect_accepted_socket

    def counted(*arguments: Any, **options: Any) -> Any:
        begun.note()
        return connect(*arguments, **options)

    monkeypatch.setattr(world.loop, "connect_accepted_socket", counted)
    with contextlib.ExitStack() as stack:
        strangers = [stack.enter_context(_connect(world)) for _ in range(COUNT)]
        http = world.instance._http
        assert http is not None
        eventually(lambda: len(http._doors[0]._silent) == COUNT)
        with world.standing_still():
            for number, plain in enumerate(strangers):
                strangers[number] = stack.enter_context(_hello(world, plain))
        for one in strangers:
            one.settimeout(PATIENCE)
            assert isinstance(one, ssl.SSLSocket)
            one.do_handshake()
        assert http._doors[0]._silent == {}
    assert 0 < begun.most <= door.BEGUN


@pytest.mark.parametrize(
    "start",
    [b"", b"\x16", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03"],
    ids=["nothing", "a byte", "a part of a message"],
)
def test_who_does_not_go_on_is_not_begun_with_and_ends(
    start: bytes, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else many could wait with their last byte, and send it all at once."""
    http = world.instance._http
    assert http is not None
    waiting = http._doors[0]
    monkeypatch.setattr(waiting, "_patience", 0.5)
    with _connect(world) as one:
        one.sendall(start)
        eventually(lambda: len(waiting._silent) == 1)
        with contextlib.suppress(ConnectionResetError):
            assert one.recv(10) == b""
    assert waiting._silent == {}


@pytest.mark.parametrize(
    ("start", "answer"),
    [(b"GET / HTTP/1.1\r\n\r\n", b""), (b"\x16\x03\x01\x00\x08\x01\x00\x01\xfc\x03\x03\x00\x00", b"")],
    ids=["no TLS", "a message in two records"],
)
def test_what_is_no_first_message_ends(start: bytes, answer: bytes, world: World) -> None:
    with _connect(world) as one:
        one.sendall(start)
        with contextlib.suppress(ConnectionResetError):
            assert one.recv(10)[:1] in (answer, b"\x15")  # an alert says what is wrong
    assert world.server.request("GET", "/livez").code == 200


def test_the_oldest_of_too_many_silent_ones_ends(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "MOST_SILENT", 3)
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(_connect(world)) for _ in range(4)]
        assert silent[0].recv(10) == b""
        assert world.server.request("GET", "/livez").code == 200


def test_bodies_that_come_at_once_are_read_a_few_at_a_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = Counted(world.turns)
    largest = 0
    feed, received = Connection._feed, Connection.data_received

    def fed(connection: Connection, data: Any) -> None:
        looked_at.note()
        feed(connection, data)

    def noted(connection: Connection, data: bytes) -> None:
        nonlocal largest
        largest = max(largest, len(data))
        received(connection, data)

    monkeypatch.setattr(Connection, "_feed", fed)
    monkeypatch.setattr(Connection, "data_received", noted)
    head = (
        f"POST /api/v1/namespaces/default/configmaps?dryRun=All HTTP/1.1\r\nHost: x\r\n"
        f"Authorization: Bearer {world.server.token}\r\nContent-Length: {len(BODY)}\r\n\r\n"
    ).encode()
    with contextlib.ExitStack() as stack:
        senders = [
            stack.enter_context(world.server.tls.wrap_socket(_connect(world), server_hostname=world.server.host))
            for _ in range(COUNT)
        ]
        threads = [threading.Thread(target=one.sendall, args=(head + BODY,)) for one in senders]
        with world.standing_still():
            for thread in threads:
                thread.start()
        for thread, one in zip(threads, senders, strict=True):
            thread.join(PATIENCE)
            assert one.recv(12) == b"HTTP/1.1 201"
    assert largest <= 4 * door.RECEIVED_BYTES  # the system keeps a little more than it is told
    assert AT_ONCE <= looked_at.most <= AT_ONCE + DIRECTLY
