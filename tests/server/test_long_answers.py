"""Long lists and watches are written as they are read: whole for who reads, and little is held for who does not."""

from __future__ import annotations

import gzip
import json
import socket
import ssl
from collections.abc import Iterator
from typing import Any, BinaryIO

import pytest

from dray.process.http.connection import Connection
from dray.server import unread
from dray.server.instance import Instance
from dray.server.portions import BYTES, EVENTS, portions
from live_server import LiveServer
from patience import PATIENCE, eventually
from server_process import server_on_thread

MAPS = "/api/v1/namespaces/default/configmaps"
SIZE, COUNT = 100_000, 24
CLASSES = "/apis/resource.k8s.io/v1beta1/deviceclasses"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LiveServer, Instance]]:
    with server_on_thread(tmp_path_factory.mktemp("state") / "state") as (server, instance):
        for number in range(COUNT):
            body = {"metadata": {"name": f"m{number:03}"}, "data": {"a": "x" * SIZE}}
            assert server.request("POST", MAPS, body).code == 201
        yield server, instance


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How long the parts are that are written."""
    found: list[int] = []
    write = Connection._write_chunk

    async def noted(self: Connection, chunk: bytes, chunked: bool) -> None:
        found.append(len(chunk))
        await write(self, chunk, chunked)

    monkeypatch.setattr(Connection, "_write_chunk", noted)
    return found


def connect(server: LiveServer) -> ssl.SSLSocket:
    raw = socket.create_connection((server.host, server.port), PATIENCE)
    return server.tls.wrap_socket(raw, server_hostname=server.host)


def ask(
    wire: ssl.SSLSocket, server: LiveServer, path: str, *headers: str, method: str = "GET", old: bool = False
) -> None:
    lines = [f"{method} {path} HTTP/1.{0 if old else 1}", "Host: x", f"Authorization: Bearer {server.token}", *headers]
    wire.sendall("\r\n".join([*lines, "", ""]).encode())


def answer_from(file: BinaryIO) -> tuple[dict[str, str], bytes]:
    """The headers and the body of the next answer."""
    assert b" 200 " in file.readline()
    headers: dict[str, str] = {}
    while line := file.readline().strip().decode():
        name, _, value = line.partition(": ")
        headers[name.lower()] = value
    if "content-length" in headers:
        return headers, file.read(int(headers["content-length"]))
    if "transfer-encoding" not in headers:
        return headers, file.read()
    body = b""
    while size := int(file.readline(), 16):
        body += file.read(size)
        assert file.read(2) == b"\r\n"
    assert file.read(2) == b"\r\n"
    return headers, body


def names(body: bytes) -> list[str]:
    return [item["metadata"]["name"] for item in json.loads(body)["items"]]


ALL = [f"m{number:03}" for number in range(COUNT)]


@pytest.mark.parametrize("headers", [(), ("Accept: application/json, */*",), ("Accept-Encoding: gzip",)])
def test_a_long_list_comes_in_parts_and_the_connection_goes_on(
    server: LiveServer, parts: list[int], headers: tuple[str, ...]
) -> None:
    with connect(server) as wire, wire.makefile("rb") as file:
        for _ in range(2):
            ask(wire, server, MAPS, *headers)
            told, body = answer_from(file)
            assert told["transfer-encoding"] == "chunked"
            body = gzip.decompress(body) if told.get("content-encoding") == "gzip" else body
            found = [name for name in names(body) if name in ALL]
            assert found == ALL
            assert json.loads(body)["kind"] == "ConfigMapList"
            assert "kind" not in json.loads(body)["items"][0]
        ask(wire, server, f"{MAPS}/m000")
        assert len(answer_from(file)[1]) > SIZE
    assert 0 < max(parts) <= BYTES


def test_a_client_that_knows_no_chunks_gets_it_until_the_end_of_the_connection(server: LiveServer) -> None:
    with connect(server) as wire, wire.makefile("rb") as file:
        ask(wire, server, MAPS, "Connection: keep-alive", old=True)
        told, body = answer_from(file)
        assert told["connection"] == "close"
        assert [name for name in names(body) if name in ALL] == ALL


def test_who_asks_for_the_head_gets_the_head(server: LiveServer) -> None:
    with connect(server) as wire, wire.makefile("rb") as file:
        ask(wire, server, MAPS, method="HEAD")
        assert b" 200 " in file.readline()
        while file.readline().strip():
            pass
        ask(wire, server, f"{MAPS}/m001")
        assert b'"m001"' in answer_from(file)[1]


def test_a_list_in_another_version_is_written_anew_in_parts(server: LiveServer, parts: list[int]) -> None:
    for number in range(30):
        made = {"metadata": {"name": f"c{number:02}", "annotations": {"a": "x" * SIZE}}, "spec": {}}
        assert server.request("POST", CLASSES, made).code == 201
    with connect(server) as wire, wire.makefile("rb") as file:
        ask(wire, server, CLASSES)
        told = json.loads(answer_from(file)[1])
    assert told["apiVersion"] == "resource.k8s.io/v1beta1"
    assert [item["metadata"]["name"] for item in told["items"]] == [f"c{number:02}" for number in range(30)]
    assert 0 < max(parts) <= BYTES


@pytest.mark.parametrize("old", [False, True], ids=["what is there", "what has happened"])
def test_watches_put_together_a_part_at_a_time(server: LiveServer, parts: list[int], old: bool) -> None:
    before = json.loads(server.request("GET", f"{MAPS}?limit=1").body)["metadata"]["resourceVersion"]
    for number in range(COUNT):
        body = {"data": {"b": f"{number} {old}"}}
        assert server.request("PATCH", f"{MAPS}/m{number:03}", body, "application/merge-patch+json").code == 200
    parts.clear()
    with connect(server) as wire, wire.makefile("rb") as file:
        ask(wire, server, f"{MAPS}?watch=1&timeoutSeconds=1" + (f"&resourceVersion={before}" if old else ""))
        events = [json.loads(line) for line in answer_from(file)[1].splitlines()]
    found = [event["object"]["metadata"]["name"] for event in events]
    assert [name for name in found if name in ALL] == ALL
    assert 0 < max(parts) <= BYTES


def test_lists_that_are_made_whole_wait_until_the_caller_has_read_others(
    running: tuple[LiveServer, Instance], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, instance = running
    monkeypatch.setattr(unread, "MOST_OF_ONE", 3 * SIZE * COUNT)
    held = instance.engine.unread
    accept = "Accept: application/yaml"
    wires = [connect(server) for _ in range(8)]
    for wire in wires:
        ask(wire, server, MAPS, accept)
    eventually(lambda: sum(map(len, held._waiting.values())) > 0)
    assert sum(held._of.values()) <= unread.MOST_OF_ONE
    assert server.request("GET", f"{MAPS}/m000").code == 200
    for wire in wires[:4]:
        wire.close()
    for wire in wires[4:]:
        with wire, wire.makefile("rb") as file:
            assert answer_from(file)[1].count(b"\n  metadata:") >= COUNT
    eventually(lambda: not held._of and not held._waiting)


def test_portions_have_everything_in_order_and_one_thing_at_least() -> None:
    sizes: list[Any] = [1, BYTES, 2 * BYTES, 5, BYTES - 5, 1, *([1] * (2 * EVENTS))]
    found = list(portions(sizes, int))
    assert [one for part in found for one in part] == sizes
    assert all(len(part) == 1 or sum(part) <= BYTES for part in found)
    assert max(map(len, found)) == EVENTS
    assert list(portions([], len)) == []
