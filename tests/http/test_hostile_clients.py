"""Clients that are slow, greedy or out to confuse: a clear answer or an end, and the server goes on for the others."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dray.process.http import MAX_BODY_BYTES, MAX_HEADER_BYTES, Limits
from dray.server.instance import Instance, ServerSettings
from patience import PATIENCE, eventually

ROOMY = Limits(connections=1200)
STRICT = Limits(header_seconds=0.5, body_seconds=0.5, idle_seconds=5.0)
"""For clients that are to be cut off: on a busy machine, others may take longer than that to ask, too."""
FEW = Limits(connections=50)
MOST_CPU_SECONDS = 2.0


class Running:
    """A server in a thread of its own, on plain HTTP unless told otherwise."""

    def __init__(self, directory: Path, *, tls: bool = False, limits: Limits = ROOMY) -> None:
        self.directory = directory
        self._is_encrypted = tls
        self._settings = ServerSettings(directory=directory, port=0, tls=tls, limits=limits)
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        instance = Instance(self._settings)
        await instance.start()
        self.port = int(instance.url.rpartition(":")[2])
        self.token = instance.credentials.admin_token
        self._ready.set()
        await self._stop.wait()
        await instance.stop(0.1)

    def __enter__(self) -> Running:
        self._thread.start()
        assert self._ready.wait(PATIENCE)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def connect_tls(self) -> ssl.SSLSocket:
        trust = ssl.create_default_context(cafile=str(self.directory / "pki" / "ca.crt"))
        return trust.wrap_socket(self.connect(), server_hostname="127.0.0.1")

    def head(self, method: str, path: str, *headers: str) -> bytes:
        lines = (f"{method} {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {self.token}", *headers)
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def ask(self, method: str, path: str, body: bytes = b"", *headers: str) -> tuple[int, bytes]:
        """One request on a connection of its own: the code and body of the answer."""
        with self.connect_tls() if self._is_encrypted else self.connect() as client:
            length = f"Content-Length: {len(body)}"
            with contextlib.suppress(ConnectionError):
                client.sendall(self.head(method, path, length, "Connection: close", *headers) + body)
            return parse(read_all(client))

    def watches(self, resource: str) -> float:
        """How many there are now, as the server counts them."""
        page = self.ask("GET", "/metrics")[1].decode()
        lines = re.findall(
            rf'^apiserver_longrunning_requests\{{.*resource="{resource}".*\}} (\S+)$', page, re.MULTILINE
        )
        return sum(map(float, lines))

    def assert_well(self) -> None:
        """Others are served as if nothing had happened, once those who were cut off are gone."""
        began = time.process_time()
        eventually(lambda: self.ask("GET", "/readyz") == (200, b"ok"))
        assert time.process_time() - began < MOST_CPU_SECONDS


def read_all(client: socket.socket) -> bytes:
    """Everything until the server ends the connection; it must end."""
    data = b""
    with contextlib.suppress(ConnectionError):
        while part := client.recv(65536):
            data += part
    return data


def parse(data: bytes) -> tuple[int, bytes]:
    head, _, body = data.partition(b"\r\n\r\n")
    return int(head.split(b" ", 2)[1]) if head else 0, body


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Running(tmp_path_factory.mktemp("hostile")) as server:
        yield server


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Running(tmp_path_factory.mktemp("hostile"), limits=STRICT) as server:
        yield server


def is_cut_off(client: socket.socket, data: bytes) -> bool:
    """Sends the same bytes again and again, slowly, until the server has enough."""
    deadline = time.monotonic() + PATIENCE
    with contextlib.suppress(ConnectionError):
        for byte in itertools.cycle(data):
            client.sendall(bytes([byte]))
            time.sleep(0.05)
            if time.monotonic() > deadline:
                return False
    return True


def test_headers_that_never_end_are_not_waited_for(strict: Running) -> None:
    with strict.connect() as client:
        client.sendall(b"GET / HTTP/1.1\r\n")
        assert is_cut_off(client, b"X: y\r\n")
    strict.assert_well()


def test_a_body_that_never_comes_is_not_waited_for(strict: Running) -> None:
    with strict.connect() as client:
        client.sendall(strict.head("POST", "/api/v1/namespaces", "Content-Length: 100000"))
        assert is_cut_off(client, b"{")
    strict.assert_well()


def test_a_silent_connection_is_not_waited_for(strict: Running) -> None:
    with strict.connect() as client:
        assert read_all(client) == b""
    strict.assert_well()


def test_a_handshake_that_never_comes_is_not_waited_for(tmp_path: Path) -> None:
    with Running(tmp_path / "tls", tls=True, limits=STRICT) as server, server.connect() as client:
        client.sendall(b"\x16\x03\x01")
        assert read_all(client) == b""


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Running(tmp_path_factory.mktemp("hostile"), tls=True) as server:
        yield server


@pytest.mark.parametrize(
    ("header", "code"),
    [(f"X-Flood: {'a' * MAX_HEADER_BYTES}", 431), ("Bad Header: x", 400), ("Content-Length: -1", 400)],
)
def test_a_refused_request_over_tls_is_read_to_its_end(encrypted: Running, header: str, code: int) -> None:
    """Whoever is still sending gets the answer, and not a broken connection."""
    with encrypted.connect_tls() as client:
        client.sendall(encrypted.head("POST", "/api/v1/namespaces", header))
        for _ in range(20):
            client.sendall(b" " * 65536)  # an end of the connection would raise here
        head, _, body = client.recv(65536).partition(b"\r\n\r\n")
        assert head.startswith(f"HTTP/1.1 {code} ".encode())
        assert b"Connection: close" in head.split(b"\r\n")
        assert json.loads(body)["code"] == code
    encrypted.assert_well()


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Running(tmp_path_factory.mktemp("hostile"), limits=FEW) as server:
        yield server


@pytest.fixture
def _of_many_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody gives up a place, as if each stranger had an address of its own."""
    monkeypatch.setattr("dray.process.http.places.SHARE", 1.0)


@pytest.mark.usefixtures("_of_many_addresses")
def test_who_is_refused_a_connection_does_not_keep_it(small: Running) -> None:
    with contextlib.ExitStack() as waiting:
        clients = [waiting.enter_context(small.connect()) for _ in range(FEW.connections + 1)]
        last = clients[-1]
        assert parse(read_all(last))[0] == 503
        assert is_cut_off(last, b" ")  # our side is open still, until the server has enough
    small.assert_well()


def test_header_floods(running: Running) -> None:
    code, body = running.ask("GET", "/api", b"", f"X-Flood: {'a' * MAX_HEADER_BYTES}")
    assert code == 431
    assert json.loads(body)["kind"] == "Status"
    code, _ = running.ask("GET", f"/api?{'a' * MAX_HEADER_BYTES}")
    assert code == 431
    running.assert_well()


def test_oversized_bodies(running: Running) -> None:
    code, body = running.ask("POST", "/api/v1/namespaces", b" " * (MAX_BODY_BYTES + 1))
    assert (code, json.loads(body)["reason"]) == (413, "RequestEntityTooLarge")
    code, _ = running.ask("POST", "/api/v1/namespaces", b" " * (17 * MAX_BODY_BYTES))
    assert code in (0, 413)  # cut off; the answer may be lost on the way, as the client is still sending
    running.assert_well()


@pytest.mark.parametrize(
    "request_line",
    [
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"BREW /coffee HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET / HTTP/1.1\r\nBad Header: x\r\n\r\n",
    ],
)
def test_malformed_requests(running: Running, request_line: bytes) -> None:
    with running.connect() as client:
        client.sendall(request_line)
        assert parse(read_all(client))[0] in (400, 0)
    running.assert_well()


@pytest.mark.parametrize(
    ("head", "code"),
    [
        ("HTTP/1.1\r\nTransfer-Encoding: x, chunked", 501),
        ("HTTP/1.1\r\nTransfer-Encoding: gzip, chunked", 501),
        ("HTTP/1.1\r\nTransfer-Encoding: ,chunked", 501),
        ("HTTP/1.1\r\nTransfer-Encoding: x\r\nTransfer-Encoding: chunked", 501),
        ("HTTP/1.1\r\nTransfer-Encoding: chunked, x", 400),
        ("HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked", 400),
        ("HTTP/1.1\r\nTransfer-Encoding:\x0bchunked", 400),
        ("HTTP/1.1\r\nTransfer-Encoding : chunked", 400),
        ("HTTP/1.1\r\nTransfer-Encoding:\r\n chunked", 400),
        ("HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked", 400),
        ("HTTP/1.0\r\nTransfer-Encoding: chunked", 400),
        ("HTTP/2.0\r\nTransfer-Encoding: chunked", 505),
        ("HTTP/1.1\r\nHost: two\r\nTransfer-Encoding: chunked", 400),
        ("HTTP/1.1\r\nContent-Length: +5", 400),
        ("HTTP/1.1\r\nContent-Length: 5, 5", 400),
    ],
)
def test_what_others_may_frame_another_way_is_refused_and_ends_the_connection(
    running: Running, head: str, code: int
) -> None:
    """Whoever stands before the server, and reads other requests than it does, would let strangers' ones through."""
    hidden = "GET /version HTTP/1.1\r\nHost: one\r\n\r\n"
    with running.connect() as client:
        client.sendall(f"POST /api {head}\r\nHost: one\r\n\r\n5\r\nhello\r\n0\r\n\r\n{hidden}".encode())
        answer = read_all(client)
    assert (parse(answer)[0], answer.count(b"HTTP/1.1 "), b"gitVersion" in answer) == (code, 1, False)
    running.assert_well()


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "PROPFIND", "PURGE"])
def test_unknown_verbs(running: Running, method: str) -> None:
    assert running.ask(method, "/api/v1/pods")[0] == 405


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("//api/v1/pods", 404),
        ("/api//v1/pods", 404),
        ("/api/v1//pods", 404),
        ("/api/v1/../v1/pods", 404),
        ("/api/v1/namespaces/../pods", 404),
        ("/api/v1/namespaces/%2e%2e/pods", 404),
        ("/api/v1/namespaces/default/pods/%2e", 404),
        ("/api/v1/namespaces/default/pods/a%2525b", 404),
        ("/api/v1/namespaces/default/pods/x/y/z", 404),
        ("/api/v1/namespaces/default/pods/x/status/y", 404),
        ("/api/v1/nodes/x/proxy/etc/passwd", 404),
        ("/api/v1/namespaces/default/pods/x/exec", 404),
        ("/apis/resource.k8s.io/v1/nope", 404),
        ("/apis/nope.example.com/v1/pods", 404),
        ("/API/V1/PODS", 404),
        ("/etc/passwd", 404),
        ("/api/v1/namespaces/default/pods/%00", 404),
        ("/api/v1/namespaces/default/pods/%ff", 404),
        ("/api/v1/pods/;jsessionid=1", 404),
        ("/api/v1/pods?limit=abc", 400),
        ("/api/v1/pods?limit=-5", 200),
        ("/api/v1/pods?watch=true&timeoutSeconds=-5", 200),
        ("/api/v1/pods?labelSelector=%ff%fe", 400),
        ("/api/v1/pods?continue=%00", 400),
        ("*", 404),
    ],
)
def test_path_tricks(running: Running, path: str, code: int) -> None:
    assert running.ask("GET", path)[0] == code


LAUGHS = b"a0: &a0 [x]\n" + b"".join(
    b"a%d: &a%d [%b]\n" % (level, level, b",".join([b"*a%d" % (level - 1)] * 10)) for level in range(1, 12)
)
"""A few lines of YAML that mean a hundred billion values."""


@pytest.mark.parametrize(
    ("body", "media", "code"),
    [
        (b"\xff\xfe\x00", "application/json", 400),
        (b'{"metadata":{"name":"\xff"}}', "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b"[" * 100_000, "application/yaml", 400),
        (LAUGHS, "application/yaml", 400),
        (b"{}", "text/html", 415),
        (b"{}", "application/cbor", 415),
        (b"{}", "x" * 1000, 415),
        (b"", "application/json", 400),
        (b"null", "application/json", 422),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_bodies_that_are_no_objects(running: Running, body: bytes, media: str, code: int) -> None:
    answered, said = running.ask("POST", "/api/v1/namespaces", body, f"Content-Type: {media}")
    assert answered == code, said
    assert json.loads(said)["status"] == "Failure"


def test_unknown_fields_cannot_write_headers(running: Running) -> None:
    fields = {
        "metadata": {"generateName": "x-"},
        "a\r\nX-Injected: yes": 1,
        **{f"f{number}": 1 for number in range(500)},
    }
    with running.connect() as client:
        body = json.dumps(fields).encode()
        client.sendall(running.head("POST", "/api/v1/namespaces", f"Content-Length: {len(body)}", "Connection: close"))
        client.sendall(body)
        head = read_all(client).partition(b"\r\n\r\n")[0].split(b"\r\n")
    assert head[0] == b"HTTP/1.1 201 Created"
    assert not [line for line in head if line.startswith(b"X-Injected")]
    assert len(head) < 100  # Python's own client gives up beyond


def test_head_has_no_body_and_the_length_of_one(running: Running) -> None:
    with running.connect() as client:
        client.sendall(running.head("HEAD", "/api/v1/namespaces/default", "Connection: close"))
        head, _, body = read_all(client).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert b"Content-Length: 0" not in head
    assert body == b""


def test_pipelined_floods(running: Running) -> None:
    with running.connect() as client:
        client.sendall(running.head("GET", "/readyz") * 200)
        said = read_all(client)
    assert b"429 Too Many Requests" in said
    running.assert_well()


def test_a_half_closed_connection_still_gets_its_answer(running: Running) -> None:
    with running.connect() as client:
        client.sendall(running.head("GET", "/readyz"))
        client.shutdown(socket.SHUT_WR)
        assert parse(read_all(client)) == (200, b"ok")


def test_a_stream_ends_when_its_reader_has_closed_after_reading_all(running: Running) -> None:
    """It would be counted as open for as long as nothing happens: a page that changes views would be refused soon."""
    with running.connect() as client:
        client.sendall(running.head("GET", "/api/v1/namespaces/default/configmaps?watch=true&timeoutSeconds=3600"))
        assert client.recv(65536).startswith(b"HTTP/1.1 200")
        client.shutdown(socket.SHUT_WR)
        read_all(client)


def test_a_watch_of_http_1_0_is_lines_and_nothing_else(running: Running) -> None:
    """It knows no chunks: their lengths would be read as part of what is told."""
    large = json.dumps({"metadata": {"name": "large"}, "data": {"a": "x" * 900_000}}).encode()
    assert running.ask("POST", "/api/v1/namespaces/default/configmaps", large)[0] == 201
    path = "/api/v1/namespaces/default/configmaps?watch=true&timeoutSeconds=1"
    with running.connect() as client:
        client.sendall(running.head("GET", path).replace(b" HTTP/1.1", b" HTTP/1.0"))
        head, _, body = read_all(client).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert b"transfer-encoding" not in head.lower()
    assert b"\r\nConnection: close" in head
    assert "large" in [json.loads(line)["object"]["metadata"]["name"] for line in body.splitlines()]


@pytest.mark.usefixtures("_of_many_addresses")
def test_too_many_connections(small: Running) -> None:
    with contextlib.ExitStack() as waiting:
        clients = [waiting.enter_context(small.connect()) for _ in range(FEW.connections + 10)]
        assert parse(read_all(clients[-1]))[0] == 503
    small.assert_well()


def test_a_thousand_idle_watches(running: Running) -> None:
    with contextlib.ExitStack() as open_ones:
        watchers = []
        for _ in range(1000):
            client = open_ones.enter_context(running.connect())
            client.sendall(running.head("GET", "/api/v1/namespaces?watch=true&resourceVersion=0&timeoutSeconds=600"))
            watchers.append(client)
        running.assert_well()
        assert running.ask("POST", "/api/v1/namespaces", b'{"metadata":{"name":"seen-by-all"}}')[0] == 201
        for client in watchers:
            seen = b""
            while b"seen-by-all" not in seen:
                part = client.recv(65536)
                assert part
                seen += part
    running.assert_well()


def test_a_watcher_that_does_not_read_is_cut_off(tmp_path: Path) -> None:
    maps = "/api/v1/namespaces/default/configmaps"
    with Running(tmp_path / "state", limits=Limits(stalled_stream_seconds=0.5)) as server, server.connect() as client:
        client.sendall(server.head("GET", f"{maps}?watch=true&resourceVersion=0"))
        assert client.recv(1) == b"H"
        assert server.watches("configmaps") == 1
        for number in range(30):
            body = json.dumps({"metadata": {"name": f"large-{number}"}, "data": {"x": "y" * 500_000}}).encode()
            assert server.ask("POST", maps, body)[0] == 201
        eventually(lambda: server.watches("configmaps") == 0)
        received = read_all(client)  # ends, although a watch lasts for minutes, and without all that was written
        assert len(received) < 30 * 500_000
        server.assert_well()
