"""The page under attack: no visitor, known or not, holds up the loop that serves everybody, or has much kept."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import NamedTuple, cast
from urllib.parse import quote

import pytest

from dashboard_visitor import API, Visitor
from dray.all_in_one.dashboards import mount_dashboard
from dray.dashboard import view_stream
from dray.dashboard.app import MOST_BYTES, Dashboard
from dray.process.clock import RealClock
from dray.server.instance import Instance, ServerSettings
from live_server import LiveServer
from loop_turns import LoopTurns
from patience import PATIENCE, eventually

LONGEST_TURN = 0.02
"""Seconds of processor time of the loop's own thread."""


class World(NamedTuple):
    server: LiveServer
    instance: Instance
    turns: LoopTurns


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A server with its page on a thread of this process, whose loop is measured."""
    directory = tmp_path_factory.mktemp("page")
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    turns = LoopTurns(loop)
    instance, dashboard = asyncio.run_coroutine_threadsafe(_start(directory), loop).result(PATIENCE)
    server = LiveServer(instance.url, directory)
    gc.disable()
    try:
        yield World(server, instance, turns)
    finally:
        gc.enable()
        server.close()
        asyncio.run_coroutine_threadsafe(dashboard.close(), loop).result(PATIENCE)
        asyncio.run_coroutine_threadsafe(instance.stop(0.5), loop).result(PATIENCE)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _start(directory: Path) -> tuple[Instance, Dashboard]:
    instance = Instance(ServerSettings(directory=directory, port=0))
    dashboard = mount_dashboard(instance, RealClock())
    await instance.start()
    return instance, dashboard


@pytest.fixture(scope="module")
def visitor(world: World) -> Visitor:
    found = Visitor(world.server)
    assert found.log_in(token=world.server.token) == 200
    assert found.ask("GET", f"{API}/watch?view=rules&once=1")[0] == 200
    return found


COOKIES = {
    "quotes": '__Secure-dray="' + '\\"' * 31_000 + '"',
    "octal numbers": '__Secure-dray="' + "\\075" * 15_000 + '"',
    "many": "a=b;" * 15_000,
    "spaces": "__Secure-dray=" + " " * 60_000 + "x",
    "names without values": ";" * 62_000,
}


@pytest.mark.parametrize("name", COOKIES)
def test_no_cookie_of_a_stranger_holds_the_loop(world: World, name: str) -> None:
    stranger = Visitor(world.server)
    stranger.cookie = COOKIES[name]
    world.turns.reset()
    assert stranger.ask("GET", f"{API}/session")[0] == 401
    assert world.turns.longest < LONGEST_TURN


@pytest.mark.parametrize(
    ("part", "times", "end", "code"),
    [
        ('device.driver != "gpu-of-nobody.example.com"', 180, "", 200),
        ('device.driver != "gpu-of-nobody.example.com"', 180, " && nothing.like.this", 422),
        ("[1,2,3,4].all(a, [1,2,3,4].all(b, [1,2,3,4].all(c, a*b*c > 0)))", 120, "", 422),
    ],
    ids=["long", "wrong", "heavy"],
)
def test_expressions_are_read_beside_the_loop(
    world: World, visitor: Visitor, part: str, times: int, end: str, code: int
) -> None:
    expression = quote(" && ".join([part] * times) + end)
    world.turns.reset()
    connection = world.server.connect()
    with closing(connection):
        connection.request("GET", f"{API}/fleet?cel={expression}", headers=visitor.headers())
        answer = connection.getresponse()
        assert answer.status == code
        answer.readline()
    assert world.turns.longest < LONGEST_TURN


@pytest.mark.parametrize(
    "framing", [b"Content-Length: %d" % (MOST_BYTES + 1), b"Transfer-Encoding: chunked"], ids=["long", "chunked"]
)
@pytest.mark.parametrize("path", ["login", "session", "nothing", "preview"])
def test_no_large_body_is_read_of_anybody(world: World, path: str, framing: bytes) -> None:
    plain = socket.create_connection((world.server.host, world.server.port), PATIENCE)
    with plain, world.server.tls.wrap_socket(plain, server_hostname=world.server.host) as raw:
        head = f"POST {API}/{path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n".encode()
        raw.sendall(head + framing + b"\r\n\r\n")  # and nothing more: the answer comes all the same
        assert raw.recv(1024).startswith(b"HTTP/1.1 413")


def test_a_pod_of_thousands_of_claims_makes_no_view_long(world: World, visitor: Visitor) -> None:
    """Whoever may create pods decides how much the page of everybody else has to send, twice a second."""
    claims = [{"name": f"c{number}", "resourceClaimName": f"{number}" + "x" * 240} for number in range(1000)]
    spec = {"containers": [{"name": "main", "image": "x"}], "resourceClaims": claims}
    path = "/api/v1/namespaces/default/pods"
    assert world.server.request("POST", path, {"metadata": {"name": "many"}, "spec": spec}).code == 201
    eventually(lambda: _names(visitor) == ["default/many"])
    told = visitor.ask("GET", f"{API}/watch?view=waiting&once=1")[2]["pods"][0]["claims"]
    assert (len(told), told[-1]) == (33, "and 968 more")


def _names(visitor: Visitor) -> list[str]:
    return [pod["name"] for pod in visitor.ask("GET", f"{API}/watch?view=waiting&once=1")[2]["pods"]]


@pytest.mark.parametrize("once", ["&once=1", ""], ids=["once", "again and again"])
def test_long_views_are_encoded_beside_the_loop(
    world: World, visitor: Visitor, monkeypatch: pytest.MonkeyPatch, once: str
) -> None:
    rows = [{"name": "x", "state": "pending", "devices": ["a", "b", "c", "d", "e"] * 20} for _ in range(100_000)]

    async def make(_viewer: object, _parameters: object) -> dict[str, object]:
        return {"pods": rows, "missing": []}

    monkeypatch.setitem(cast(dict[str, object], view_stream.VIEWS), "waiting", make)
    world.turns.reset()
    connection = world.server.connect()
    with closing(connection):
        connection.request("GET", f"{API}/watch?view=waiting{once}", headers=visitor.headers())
        answer = connection.getresponse()
        assert answer.status == 200
        assert len(answer.readline()) > 40_000_000
    assert world.turns.longest < LONGEST_TURN


def test_views_are_worked_out_one_at_a_time_for_each_user(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that work out what somebody asks for a hundred times are not there for others."""
    at_once = most = 0

    async def make(_viewer: object, _parameters: object) -> dict[str, object]:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        for _ in range(100):
            await asyncio.sleep(0)
        at_once -= 1
        return {}

    monkeypatch.setitem(cast(dict[str, object], view_stream.VIEWS), "waiting", make)
    with ThreadPoolExecutor(8) as threads:
        codes = list(threads.map(lambda _: visitor.ask("GET", f"{API}/watch?view=waiting&once=1")[0], range(32)))
    assert (set(codes), most) == ({200}, 1)
