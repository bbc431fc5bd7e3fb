"""One object, asked for on a connection that has asked before, is answered without a task: as any other request is."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from typing import Any, BinaryIO

import pytest

from dray.process.http import Listener, Request, Response, Server
from dray.server import handlers
from dray.server.app import App
from dray.server.instance import Instance
from live_server import LiveServer
from patience import PATIENCE

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """What was asked for so, and whether it was answered so."""
    found: list[tuple[str, bool]] = []
    answer = App._stored

    def told(self: App, handling: Any) -> Any:
        given = answer(self, handling)
        found.append((handling.request.path, given is not None))
        return given

    monkeypatch.setattr(App, "_stored", told)
    return found


def answer_from(file: BinaryIO) -> tuple[int, bytes]:
    """The code and the body of the next answer."""
    code, length = int(file.readline().split()[1]), 0
    while (line := file.readline().strip()) != b"":
        name, _, value = line.partition(b": ")
        length = int(value) if name == b"Content-Length" else length
    return code, file.read(length)


class Wire:
    """A connection whose requests have the same headers each time."""

    def __init__(self, server: LiveServer, **headers: str) -> None:
        raw = socket.create_connection((server.host, server.port), timeout=PATIENCE)
        self._socket = server.tls.wrap_socket(raw, server_hostname=server.host)
        self._file = self._socket.makefile("rb")
        said = {"Host": "x", "Authorization": f"Bearer {server.token}", **headers}
        self._headers = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in said.items())

    def ask(self, path: str) -> tuple[int, bytes]:
        self._socket.sendall(f"GET {path} HTTP/1.1\r\n{self._headers}\r\n".encode())
        return answer_from(self._file)

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


def made(server: LiveServer, name: str) -> bytes:
    answer = server.request("POST", MAPS, {"metadata": {"name": name}, "data": {"a": "1"}})
    assert answer.code == 201
    return answer.body


def test_the_second_question_of_a_connection_is_answered_at_once(
    server: LiveServer, at_once: list[tuple[str, bool]]
) -> None:
    expected = made(server, "plain")
    with Wire(server) as wire:
        assert wire.ask(f"{MAPS}/plain") == (200, expected)
        assert at_once == []
        assert wire.ask(f"{MAPS}/plain") == (200, expected)
        assert at_once == [(f"{MAPS}/plain", True)]
        assert (
            server.request("PATCH", f"{MAPS}/plain", {"data": {"a": "2"}}, "application/merge-patch+json").code == 200
        )
        assert json.loads(wire.ask(f"{MAPS}/plain")[1])["data"] == {"a": "2"}


@pytest.mark.parametrize(
    ("path", "headers", "code"),
    [
        (f"{MAPS}/missing", {}, 404),
        (f"{MAPS}", {}, 200),
        ("/api/v1/namespaces/default/status", {}, 200),
        ("/version", {}, 200),
        ("/nothing", {}, 404),
        (f"{MAPS}/other", {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}, 200),
        (f"{MAPS}/other", {"Authorization": "Bearer wrong"}, 401),
        (f"{MAPS}/other", {"Impersonate_User": "somebody"}, 403),
    ],
)
def test_what_is_more_than_that_is_answered_the_same_both_times(
    server: LiveServer, path: str, headers: dict[str, str], code: int
) -> None:
    server.request("POST", MAPS, {"metadata": {"name": "other"}})
    with Wire(server, **headers) as wire:
        first = wire.ask(path)
        assert first[0] == code
        assert wire.ask(path) == first


async def test_what_is_answered_at_once_does_not_overtake_what_came_before() -> None:
    goes_on = asyncio.Event()

    async def application(request: Request) -> Response:
        if request.path == "/slow":
            await goes_on.wait()
        return Response(200, request.path.encode())

    def at_once(request: Request) -> Response | None:
        return Response(200, b"at once") if request.path == "/quick" else None

    server = Server(application, at_once=at_once)
    port = await server.listen(Listener("127.0.0.1", 0))
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    async def ask(path: str) -> None:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        await writer.drain()
        await asyncio.sleep(0.01)  # so that it comes by itself

    try:
        async with asyncio.timeout(PATIENCE):
            for path in ("/first", "/quick", "/slow", "/quick"):
                await ask(path)
            goes_on.set()
            for expected in (b"/first", b"at once", b"/slow", b"/quick"):
                await reader.readuntil(b"\r\n\r\n")
                assert await reader.readexactly(len(expected)) == expected
    finally:
        writer.transport.abort()
        await server.stop(0.1)


def test_they_are_counted(server: LiveServer, at_once: list[tuple[str, bool]]) -> None:
    made(server, "counted")

    def count() -> float:
        page = server.request("GET", "/metrics").body.decode()
        lines = [line for line in page.splitlines() if line.startswith("apiserver_request_total{")]
        return sum(
            float(line.split()[-1]) for line in lines if 'resource="configmaps"' in line and 'verb="GET"' in line
        )

    before = count()
    with Wire(server) as wire:
        for _ in range(5):
            wire.ask(f"{MAPS}/counted")
    assert count() == before + 5
    assert [is_answered for _, is_answered in at_once].count(True) == 4


def test_reads_that_take_long_are_counted_as_long(
    running: tuple[LiveServer, Instance], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asks for what is costly, in another form or version, has less of the next turns."""
    server, instance = running
    made(server, "costly")
    answer = handlers.VERBS["get"]

    async def slowly(*given: Any) -> Any:
        end = time.perf_counter() + 0.02
        while time.perf_counter() < end:
            pass
        return await answer(*given)

    monkeypatch.setitem(handlers.VERBS, "get", slowly)
    flow = instance.application._fairness.flow("kubernetes-admin")
    with Wire(server, Accept="application/yaml") as wire:
        for _ in range(5):
            assert wire.ask(f"{MAPS}/costly")[0] == 200
    assert flow.estimate > 0.005


def test_a_mistake_while_answering_at_once_is_told_as_others_are(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = made(server, "mistaken")

    def fail(*_: object) -> None:
        raise RuntimeError("a mistake")

    monkeypatch.setattr(App, "_stored", fail)
    with Wire(server) as wire:
        assert [wire.ask(f"{MAPS}/mistaken") for _ in range(3)] == [(200, expected)] * 3


def test_a_right_that_is_taken_away_is_gone_at_the_next_question(server: LiveServer) -> None:
    made(server, "guarded")
    group = "/apis/rbac.authorization.k8s.io/v1"
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}
    account = "/api/v1/namespaces/default/serviceaccounts"
    server.request("POST", account, {"metadata": {"name": "reader"}})
    server.request("POST", f"{group}/clusterroles", {"metadata": {"name": "reads"}, "rules": [rule]})
    binding = {
        "metadata": {"name": "reads"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reads"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}],
    }
    assert server.request("POST", f"{group}/clusterrolebindings", binding).code == 201
    token = server.request("POST", f"{account}/reader/token", {"spec": {"expirationSeconds": 600}}).json["status"][
        "token"
    ]
    with Wire(server, Authorization=f"Bearer {token}") as wire:
        assert [wire.ask(f"{MAPS}/guarded")[0] for _ in range(3)] == [200] * 3
        assert server.request("DELETE", f"{group}/clusterrolebindings/reads").code == 200
        assert wire.ask(f"{MAPS}/guarded")[0] == 403
