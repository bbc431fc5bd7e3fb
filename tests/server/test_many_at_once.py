"""However many connections come at once, or bring something, a turn of the loop has a few of them (issue 14)."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dray.process.http import Answer, door
from dray.process.http.connection import Connection
from dray.process.http.turns import AT_ONCE, DIRECTLY
from dray.process.http.writing import PIECE_BYTES, PIECES
from dray.server.instance import Instance
from dray.server.observers.handling import Handling, SilentObserver
from dray.server.security.identity import MASTERS, authenticated
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


HOG, ANN = "token-of-the-hog-0123456789", "token-of-ann-0123456789012"
MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[World]:
    """A server with two who may do the same."""
    tokens = {HOG: authenticated("hog", [MASTERS]), ANN: authenticated("ann", [MASTERS])}
    with server_on_thread(tmp_path / "state", tokens=tokens) as (server, instance):
        loop = instance._tasks[0].get_loop()
        yield World(server, instance, loop, LoopTurns(loop))


class Answered(SilentObserver):
    """Whose requests were answered, in order."""

    def __init__(self) -> None:
        self.users: list[str] = []

    def answered(self, handling: Handling, answer: Answer) -> None:  # noqa: ARG002 - as observers are called
        if handling.caller is not None:
            self.users.append(handling.caller.user)


def _request(token: str, method: str, path: str, body: bytes) -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", f"{MAPS}/small", b""),
        ("GET", MAPS, b""),
        ("GET", "/nothing", b""),
        ("POST", f"{MAPS}?dryRun=All", b'{"metadata":{"name":"x"}}'),
    ],
    ids=["an object", "a list", "nothing", "a write"],
)
@pytest.mark.parametrize("connections", [24, 96])
def test_whoever_has_one_connection_waits_for_a_few_requests_of_who_has_many(
    connections: int, method: str, path: str, body: bytes, shared: World
) -> None:
    """Counted in requests that were answered before: however many there were, and whatever they asked for."""
    _make_small(shared)
    theirs = [_request(HOG, method, path, body)] * connections
    assert _answered_before_ann(shared, theirs) <= 8


def test_many_service_accounts_of_one_namespace_are_one_of_those_who_share(shared: World) -> None:
    """Whoever may make one may make many, and would have as many shares."""
    _make_small(shared)
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    theirs = []
    for number in range(24):
        shared.server.request("POST", accounts, {"metadata": {"name": f"hog-{number}"}})
        made = shared.server.request("POST", f"{accounts}/hog-{number}/token", {"spec": {"expirationSeconds": 600}})
        theirs.append(_request(made.json["status"]["token"], "GET", f"{MAPS}/small", b""))
    assert _answered_before_ann(shared, theirs) <= 8


def _make_small(world: World) -> None:
    assert world.server.request("POST", MAPS, {"metadata": {"name": "small"}}).code == 201


def _answered_before_ann(world: World, theirs: list[bytes]) -> int:
    """How many of others, each on a connection of its own, are answered before the last that comes, which is ann's."""
    order = Answered()
    application = world.instance.application
    application._observers = (*application._observers, order)
    hers = _request(ANN, "GET", f"{MAPS}/small", b"")
    with contextlib.ExitStack() as stack:
        connected = [
            stack.enter_context(world.server.tls.wrap_socket(_connect(world), server_hostname=world.server.host))
            for _ in [*theirs, hers]
        ]
        requests = list(zip(connected, [*theirs, hers], strict=True))
        for one, request in requests:
            one.sendall(request)  # so that it is known whose connection it is
            assert one.recv(9) == b"HTTP/1.1 "
        order.users.clear()
        with world.standing_still():
            for one, request in requests:
                one.sendall(request)
        eventually(lambda: len(order.users) == len(requests))
    return order.users.index("ann")


def test_who_takes_all_places_with_watches_leaves_one_to_whoever_comes(
    shared: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    http = shared.instance._http
    assert http is not None
    monkeypatch.setattr(http._connections, "_most", 20)
    watch = _request(HOG, "GET", f"{MAPS}?watch=1", b"")

    def connected(stack: contextlib.ExitStack) -> ssl.SSLSocket:
        plain = _connect(shared)
        return stack.enter_context(shared.server.tls.wrap_socket(plain, server_hostname=shared.server.host))

    with contextlib.ExitStack() as stack:
        for _ in range(30):
            one = connected(stack)
            one.sendall(watch)
            assert one.recv(12) == b"HTTP/1.1 200"
        assert http.connection_count == 20
        ann = [connected(stack) for _ in range(4)]
        for _ in range(3):
            for one in ann:
                one.sendall(_request(ANN, "GET", "/version", b""))
                assert one.recv(12) == b"HTTP/1.1 200"
                one.recv(4096)


@pytest.mark.parametrize("query", ["?watch=1&resourceVersion=%d", "?watch=1", ""], ids=["news", "watches", "lists"])
def test_what_many_are_told_at_once_is_written_a_few_at_a_time(
    query: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has many watches hears of each change as often, and of a large object that is much to write each time."""
    for number in range(4):
        made = {"metadata": {"name": f"large-{number}"}, "data": {"a": "x" * 200_000}}
        assert world.server.request("POST", MAPS, made).code == 201
    if "%d" in query:
        query %= int(world.server.request("GET", f"{MAPS}?limit=1").json["metadata"]["resourceVersion"])
    in_a_turn: collections.Counter[int] = collections.Counter()
    write = Connection._write

    def counted(self: Connection, data: bytes | memoryview) -> None:
        in_a_turn[world.turns.count] += len(data)
        write(self, data)

    with contextlib.ExitStack() as stack:
        told = [
            stack.enter_context(world.server.tls.wrap_socket(_connect(world), server_hostname=world.server.host))
            for _ in range(30)
        ]
        monkeypatch.setattr(Connection, "_write", counted)
        with world.standing_still():
            for one in told:
                one.sendall(_request(world.server.token, "GET", f"{MAPS}{query}", b""))
        if "resourceVersion" in query:
            for one in told:
                assert one.recv(12) == b"HTTP/1.1 200"
            merge = "application/merge-patch+json"
            patched = world.server.request("PATCH", f"{MAPS}/large-1", {"data": {"b": "c"}}, merge)
            assert patched.code == 200
        eventually(lambda: sum(in_a_turn.values()) > 30 * 200_000)
    assert max(in_a_turn.values()) < 3 * PIECES * PIECE_BYTES


def test_the_selectors_of_watches_are_bounded_for_each_user(shared: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read from them takes many times as much as they do, for as long as they are open."""
    monkeypatch.setattr(shared.instance.application._long_watches, "_most", 50_000)
    selector = ",".join(f"a%21%3D{number}" for number in range(2_000))
    codes = []
    with contextlib.ExitStack() as stack:
        for token, path in (
            *((HOG, f"{MAPS}?watch=1&labelSelector={selector}") for _ in range(4)),
            (ANN, f"{MAPS}?watch=1&labelSelector={selector}"),
            (HOG, f"{MAPS}?watch=1&labelSelector=a%3Db"),
        ):
            one = stack.enter_context(
                shared.server.tls.wrap_socket(_connect(shared), server_hostname=shared.server.host)
            )
            one.sendall(_request(token, "GET", path, b""))
            codes.append(one.recv(12)[9:])
    assert codes == [b"200", b"200", b"429", b"429", b"200", b"200"]
    eventually(lambda: not shared.instance.application._long_watches._open)
