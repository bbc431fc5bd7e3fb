"""Whatever is in the head of a request, at whatever length: no turn of the loop is long, and nothing fails.

What a head may have is what the server's own description of itself names, and what it reads besides.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from dray.server.instance import Instance
from live_server import LiveServer
from loop_turns import LoopTurns
from patience import PATIENCE
from server_process import server_on_thread

LONGEST_TURN = 0.02
"""Seconds of processor time."""
LONG = 30_000
TEXTS = ("9", "a,", "(", "%5C", "=", "1.", "-", "/", "a=b,", "%FF")
PATHS = (
    ("GET", "/version"),
    ("GET", "/openapi/v3"),
    ("GET", "/dashboard/api/session"),
    ("GET", "/api/v1/namespaces/default/configmaps"),
    ("GET", "/api/v1/namespaces/default/configmaps/absent"),
    ("DELETE", "/api/v1/namespaces/default/configmaps/absent"),
    ("GET", "/api/v1/namespaces/default/pods/absent/log"),
    ("GET", "/api/v1/namespaces/default/pods/absent/exec"),
)
OF_CONTAINERS = ("command", "container", "limitBytes", "ports", "sinceSeconds", "sinceTime", "stdin", "tailLines")
BESIDES = ("timeout", "preconditions.uid", "by", "cel", "as", "q", *OF_CONTAINERS)
HEADERS = (
    "Accept",
    "Accept-Encoding",
    "Audit-Id",
    "Authorization",
    "Content-Type",
    "Cookie",
    "Expect",
    "If-None-Match",
    "Impersonate-Extra-x",
    "Impersonate-Group",
    "Impersonate-User",
    "Origin",
    "Range",
    "Sec-WebSocket-Protocol",
    "Upgrade",
    "User-Agent",
)
WAYS = (
    "/",
    "/api/v1/watch/",
    "/api/v1/watch/namespaces/",
    "/api/v1/namespaces/",
    "/apis/",
    "/openapi/v3/",
    "/dashboard/",
    "/api/v1/nodes/n/proxy/",
    "/livez/",
    "/debug/",
)
STEPS = ("watch/", "a/", "/", "namespaces/", "api/v1/", "../", "%2e/", "proxy/")


class World(NamedTuple):
    server: LiveServer
    turns: LoopTurns


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    async def measured(_instance: Instance) -> LoopTurns:
        return LoopTurns(asyncio.get_running_loop())

    with server_on_thread(tmp_path_factory.mktemp("server")) as (server, instance):
        loop = instance._tasks[0].get_loop()
        turns = asyncio.run_coroutine_threadsafe(measured(instance), loop).result(PATIENCE)
        gc.disable()
        yield World(server, turns)
        gc.enable()


def _long(text: str) -> str:
    return text * (LONG // len(text))


def _hold_up(world: World, method: str, path: str, **headers: str) -> str:
    """What is wrong with an answer; empty if nothing is."""
    world.turns.reset()
    answer = world.server.request(method, path, **headers)
    if answer.code == 500:
        return f"{method} {path[:60]}: {answer.body[:200]!r}"
    if world.turns.longest > LONGEST_TURN:
        return f"{method} {path[:60]}: {world.turns.longest * 1000:.0f} ms"
    return ""


def _names(described: Any) -> set[str]:
    """The parameters of all operations that the server describes."""
    found = set[str]()
    for path in described["paths"].values():
        for operation in (path, *(one for one in path.values() if isinstance(one, dict))):
            found |= {one["name"] for one in operation.get("parameters", ()) if one.get("in") == "query"}
    return found


def test_every_parameter_may_be_long(world: World) -> None:
    names = _names(world.server.request("GET", "/openapi/v2").json) - {"watch"} | set(BESIDES)
    assert {"labelSelector", "continue", "fieldManager", "gracePeriodSeconds"} <= names
    for method, path in PATHS:
        world.server.request(method, path)  # the first of a kind brings modules with it
    wrong = {
        _hold_up(world, method, f"{path}?{name}={_long(text)}")
        for name in sorted(names)
        for number, text in enumerate(TEXTS)
        for method, path in PATHS[number % 2 :: 2]
    }
    assert wrong - {""} == set()


def test_every_header_may_be_long(world: World) -> None:
    wrong = {
        _hold_up(world, *PATHS[(number + place) % 4], **{name.replace("-", "_"): _long(text)})
        for place, name in enumerate(HEADERS)
        for number, text in enumerate((*TEXTS, '"\\"', "*/*;q=0.1,", "a;q=0.", "Bearer ", "é"))
    }
    assert wrong - {""} == set()


@pytest.mark.parametrize("token", ["admin", ""])
def test_every_path_may_be_long(world: World, token: str) -> None:
    kept = world.server.token
    world.server.token = kept if token else "nobody's"
    try:
        wrong = {_hold_up(world, "GET", f"{way}{_long(step)}") for way in WAYS for step in STEPS}
    finally:
        world.server.token = kept
    assert wrong - {""} == set()
