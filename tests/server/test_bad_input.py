"""Requests that no well-behaved client sends: each gets a clear answer, and the server goes on."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from dray.process.http import MAX_BODY_BYTES, MAX_HEADER_BYTES
from dray.server.instance import Instance
from live_server import LiveServer
from patience import PATIENCE
from server_process import server_on_thread

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LiveServer, Instance]]:
    with server_on_thread(tmp_path_factory.mktemp("state") / "state", tls=False) as started:
        yield started


class Reply:
    """The answer to bytes sent over a socket."""

    def __init__(self, data: bytes) -> None:
        head, _, self.body = data.partition(b"\r\n\r\n")
        self.code = int(head[9:12] or 0)
        self.head = head.decode("latin-1")

    @property
    def status(self) -> dict[str, Any]:
        """The Status in the body."""
        found: dict[str, Any] = json.loads(self.body)
        assert found["kind"] == "Status"
        return found


def send(server: LiveServer, data: bytes, *, half_close: bool = False) -> Reply:
    """Sends bytes on a connection of their own; everything that comes back until the server closes it."""
    with socket.create_connection((server.host, server.port), timeout=PATIENCE) as connection:
        connection.sendall(data)
        if half_close:
            connection.shutdown(socket.SHUT_WR)
        received = b""
        while piece := connection.recv(65536):
            received += piece
    return Reply(received)


def request(
    server: LiveServer,
    method: str,
    path: str,
    body: bytes = b"",
    content_type: str = "application/json",
    more: str = "",
) -> Reply:
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {server.token}\r\n"
        f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    )
    return send(server, head.encode("latin-1") + body)


@pytest.mark.parametrize(
    "data",
    [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x00" * 100],
    ids=["tls", "no path", "version", "zeros"],
)
def test_what_is_not_http_is_refused(server: LiveServer, data: bytes) -> None:
    reply = send(server, data)
    assert reply.code == 400
    assert reply.status["message"] == "malformed HTTP request"


@pytest.mark.parametrize(
    "flood", [f"X-Large: {'x' * MAX_HEADER_BYTES}\r\n", "".join(f"X-{n}: 12345678\r\n" for n in range(10_000))]
)
def test_floods_of_headers_are_cut_off(server: LiveServer, flood: str) -> None:
    assert request(server, "GET", MAPS, more=flood).code == 431


@pytest.mark.req("implied-19")
def test_an_oversized_body_is_refused_and_the_connection_stays_usable(server: LiveServer) -> None:
    body = b'{"data":{"a":"' + b"x" * MAX_BODY_BYTES + b'"}}'
    reply = request(server, "POST", MAPS, body)
    assert reply.code == 413
    assert reply.status["reason"] == "RequestEntityTooLarge"


def test_a_body_without_end_is_cut_off(server: LiveServer) -> None:
    head = f"POST {MAPS} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    with socket.create_connection((server.host, server.port), timeout=PATIENCE) as connection:
        connection.sendall(head)
        piece = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
        with pytest.raises(OSError):  # noqa: PT012
            while True:
                connection.sendall(piece)


@pytest.mark.parametrize(
    ("body", "content_type", "code"),
    [
        (b'{"metadata":{"name":"a\xff\xfe"}}', "application/json", 400),
        (b'{"metadata":{"name":"a"', "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b'{"a":' * 50_000 + b"1" + b"}" * 50_000, "application/json", 400),
        (b"", "application/json", 400),
        (b"[]", "application/json", 400),
        (b'"text"', "application/json", 400),
        (b'{"metadata":{"name":"a","generation":99999999999999999999999999}}', "application/json", 400),
        (b"a: b\x00c", "application/yaml", 400),
        (b"a: &a [*a, *a]", "application/yaml", 400),
        (b"{}", "text/plain", 415),
        (b"{}", "application/xml; charset=utf-8", 415),
    ],
)
def test_bodies_that_cannot_be_read_are_refused(server: LiveServer, body: bytes, content_type: str, code: int) -> None:
    reply = request(server, "POST", MAPS, body, content_type)
    assert reply.code == code, reply.body
    assert reply.status["status"] == "Failure"


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/api/v1/namespaces/default/../../../etc/passwd", 404),
        ("GET", "//api//v1//pods", 404),
        ("GET", "/api/v1/namespaces/default/configmaps/a%2Fb", 404),
        ("GET", "/api/v1/namespaces/default/configmaps/%00", 404),
        ("GET", "/api/v1/namespaces/default/configmaps/%ff%fe", 404),
        ("GET", "/api/v1/namespaces//configmaps", 404),
        ("GET", "/api/v1/nothing", 404),
        ("GET", "/apis/nothing/v1/things", 404),
        ("GET", "/" + "a/" * 5000, 404),
        ("POST", f"{MAPS}/one", 405),
        ("PUT", MAPS, 405),
        ("OPTIONS", MAPS, 405),
        ("POST", "/version", 405),
        ("PATCH", f"{MAPS}/none", 415),
        ("GET", f"{MAPS}?limit=many", 400),
        ("GET", f"{MAPS}?labelSelector=%3D%3D%3D", 400),
        ("GET", f"{MAPS}?fieldSelector=spec.none=1", 400),
        ("GET", f"{MAPS}?continue=garbage", 400),
        ("GET", f"{MAPS}?resourceVersion=-1", 400),
        ("GET", f"{MAPS}?watch=true&resourceVersion=x", 400),
        ("POST", f"{MAPS}?dryRun=Some", 422),
        ("POST", f"{MAPS}?fieldValidation=Loud", 422),
    ],
)
def test_paths_methods_and_queries_that_cannot_be_are_refused(
    server: LiveServer, method: str, path: str, code: int
) -> None:
    reply = request(server, method, path, b"{}" if method in ("POST", "PUT", "PATCH") else b"", "application/json")
    assert reply.code == code, reply.body


def test_a_half_closed_connection_still_gets_its_answer(server: LiveServer) -> None:
    head = f"GET {MAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token}\r\nConnection: close\r\n\r\n"
    assert send(server, head.encode(), half_close=True).code == 200


def test_pipelined_requests_are_answered_in_order(server: LiveServer) -> None:
    one = "GET {} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + server.token + "\r\n{}\r\n"
    pages = ["/version", "/api", f"{MAPS}/none"]
    data = "".join(one.format(page, "Connection: close\r\n" if page is pages[-1] else "") for page in pages)
    with socket.create_connection((server.host, server.port), timeout=PATIENCE) as connection:
        connection.sendall(data.encode())
        received = b""
        while piece := connection.recv(65536):
            received += piece
    places = [received.index(text) for text in (b'"gitVersion"', b'"APIVersions"', b'"NotFound"')]
    assert places == sorted(places)


def test_a_connection_that_breaks_in_the_middle_of_a_request_costs_nothing(
    running: tuple[LiveServer, Instance],
) -> None:
    server, instance = running
    for _ in range(50):
        with socket.create_connection((server.host, server.port)) as connection:
            connection.sendall(f"POST {MAPS} HTTP/1.1\r\nContent-Length: 1000\r\n\r\n{{".encode())
    assert request(server, "GET", MAPS).code == 200
    assert instance.store.stats().pending_writes == 0


def test_concurrent_writers_of_one_object_lose_no_update(server: LiveServer) -> None:
    made = request(server, "POST", MAPS, b'{"metadata":{"name":"counter"},"data":{"count":"0"}}')
    assert made.code == 201
    path, rounds, conflicts = f"{MAPS}/counter", 8, []

    def count() -> None:
        done = 0
        while done < rounds:
            current = json.loads(request(server, "GET", path).body)
            current["data"]["count"] = str(int(current["data"]["count"]) + 1)
            code = request(server, "PUT", path, json.dumps(current).encode()).code
            assert code in (200, 409)
            done += code == 200
            conflicts.append(code == 409)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    final = json.loads(request(server, "GET", path).body)
    assert final["data"]["count"] == str(4 * rounds)


def test_objects_nested_deeper_than_anybody_follows_are_refused_or_taken(server: LiveServer) -> None:
    """Never a mistake of the server: field owners, patches and values of any kind, a thousand levels deep."""
    deep: Any = {}
    for _ in range(900):
        deep = {"f:a": deep}
    owners = [{"manager": "a", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": deep}]
    maps = "/api/v1/namespaces/default/configmaps"
    made = {"metadata": {"name": "deep", "managedFields": owners}}
    assert request(server, "POST", maps, json.dumps(made).encode()).code == 201
    for content_type in ("application/merge-patch+json", "application/strategic-merge-patch+json"):
        sent = json.dumps({"metadata": {"managedFields": owners}, "data": deep}).encode()
        assert 400 <= request(server, "PATCH", f"{maps}/deep", sent, content_type).code < 500
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "deep"}, "data": deep}
    sent = json.dumps(applied).encode()
    reply = request(server, "PATCH", f"{maps}/deep?fieldManager=m", sent, "application/apply-patch+yaml")
    assert "failed to create typed patch object" in reply.status["message"]
