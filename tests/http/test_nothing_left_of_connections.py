"""What is opened and closed again leaves nothing that only a garbage collection would find (issue 21).

Counted in objects, with the collector switched off: a server never has the time for a full collection.
"""

from __future__ import annotations

import asyncio
import gc
import http.client
import ssl
from collections import Counter
from pathlib import Path

import uvloop

from dray.reconcile import RealClock
from dray.server.instance import Instance, ServerSettings

COUNT = 20
PER_CONNECTION = (
    "Connection",
    "HttpRequestParser",
    "SSLProtocol",
    "_SSLProtocolTransport",
    "SSLObject",
    "Event",
    "Task",
    "Request",
    "Handling",
)

WANTED = (
    "GET /version",
    "GET /api/v1/nodes",
    "GET /api/v1/nodes?watch=true&timeoutSeconds=60",
    "GET /nowhere",
    "POST /api/v1/namespaces/default/configmaps?dryRun=All",
    "POST /nowhere",
)


def _come_and_go(port: int, token: str, wanted: str, count: int) -> None:
    context = ssl._create_unverified_context()
    method, path = wanted.split(" ")
    body = None if method == "GET" else b'{"metadata":{"generateName":"x-"}}'
    for _ in range(count):
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=context)
        connection.request(method, path, body, headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        if "watch" not in path:
            answer.read()
        connection.close()
        connection.sock = None


def _garbage() -> Counter[str]:
    """What a collection finds, by type."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        return Counter(name for one in gc.garbage if (name := type(one).__name__) in PER_CONNECTION)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()


async def _left_by(instance: Instance, token: str, wanted: str) -> Counter[str]:
    port = int(instance.url.rsplit(":", 1)[1])
    gc.collect()
    gc.disable()
    try:
        await asyncio.to_thread(_come_and_go, port, token, wanted, COUNT)
        await asyncio.sleep(0.2)
        return _garbage()
    finally:
        gc.enable()


def test_connections_and_watches_leave_no_cycles(tmp_path: Path) -> None:
    async def run() -> dict[str, Counter[str]]:
        instance = Instance(ServerSettings(directory=tmp_path, port=0), clock=RealClock())
        await instance.start()
        try:
            token = (tmp_path / "admin-token").read_text().strip()
            return {one: await _left_by(instance, token, one) for one in WANTED}
        finally:
            await instance.stop()

    left = uvloop.run(run())
    assert {one: found for one, found in left.items() if found} == {}
