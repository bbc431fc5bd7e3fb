"""Custom resources of 2 KiB with a structural schema and three rules: creates at 16 connections, and a list of 5,000.

The load comes from this process, the server is another one. What the server computes per object is given beside the
rate, because on a busy machine the rate says little: `creates_per_second_by_cpu` is what one core would do.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvloop
from bench._process import Dray
from bench.server import Connection, connect, head, numbered

COUNT, CONNECTIONS, ROUNDS = 5_000, 16, 9
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
LIMITS = {"creates_per_second": 2_000, "list_5000_ms": 150}

_TEXT = {"type": "string", "maxLength": 200}
_PART = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": _TEXT, "image": _TEXT, "size": {"type": "integer"}},
}
_RULES = (
    "self.replicas <= self.most",
    "self.parts.size() <= self.most * 5",
    "!has(self.note) || self.note.startsWith('n')",
)
_SPEC = {
    "type": "object",
    "required": ["replicas", "most", "parts"],
    "properties": {
        "replicas": {"type": "integer", "minimum": 0, "default": 1},
        "most": {"type": "integer"},
        "note": _TEXT,
        "parts": {"type": "array", "maxItems": 32, "items": _PART},
    },
    "x-kubernetes-validations": [{"rule": rule} for rule in _RULES],
}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": _SPEC}}},
            }
        ],
    },
}


def widget(name: str) -> bytes:
    """A custom resource of about 2 KiB."""
    parts = [{"name": f"part-{number}", "image": "registry.example.com/" + "x" * 60, "size": 3} for number in range(15)]
    spec = {"replicas": 2, "most": 5, "note": "n" * 100, "parts": parts}
    document = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}
    return json.dumps(document).encode()


async def _post(connection: Connection, server: Dray, path: str, body: bytes) -> int:
    code, _ = await connection.call(head(server, "POST", path, len(body)), body)
    return code


async def define(server: Dray, connection: Connection) -> None:
    """Makes the kind, and waits until it is there, with a first object."""
    if await _post(connection, server, DEFINITIONS, json.dumps(DEFINITION).encode()) != 201:
        raise RuntimeError("the definition was refused")
    while await _post(connection, server, WIDGETS, widget("first")) != 201:
        await asyncio.sleep(0.1)


async def create_over(server: Dray, clients: list[Connection], names: Iterator[str]) -> None:
    """Makes objects until the names are used up."""

    async def client(connection: Connection) -> None:
        for name in names:
            if await _post(connection, server, WIDGETS, widget(name)) != 201:
                raise RuntimeError(f"create of {name} failed")

    await asyncio.gather(*map(client, clients))


async def _create(server: Dray) -> dict[str, float]:
    clients = await connect(server, CONNECTIONS)
    await define(server, clients[0])
    began, cpu = time.perf_counter(), server.cpu_seconds()
    await create_over(server, clients, numbered("widget", COUNT - 1))
    spent = server.cpu_seconds() - cpu
    return {
        "object_bytes": len(widget("widget-0000")),
        "creates_per_second": round(COUNT / (time.perf_counter() - began)),
        "creates_per_second_by_cpu": round(COUNT / spent),
    }


async def _list(server: Dray) -> dict[str, float]:
    [connection] = await connect(server, 1)
    times, cpu = [], server.cpu_seconds()
    for _ in range(ROUNDS):
        began = time.perf_counter()
        code, body = await connection.call(head(server, "GET", WIDGETS))
        times.append(time.perf_counter() - began)
        if code != 200 or body.count(b'"uid"') < COUNT:
            raise RuntimeError(f"list: {code}, {len(body)} bytes")
    spent = server.cpu_seconds() - cpu
    return {
        "list_5000_ms": round(sorted(times)[ROUNDS // 2] * 1000, 1),
        "list_5000_ms_by_cpu": round(spent / ROUNDS * 1000, 1),
    }


async def _measure(server: Dray) -> dict[str, Any]:
    return {**await _create(server), **await _list(server), "limits": LIMITS}


def run() -> dict[str, Any]:
    """All measurements; the names carry the units."""
    with tempfile.TemporaryDirectory() as name, Dray(["server"], Path(name) / "state") as server:
        return uvloop.run(_measure(server))
