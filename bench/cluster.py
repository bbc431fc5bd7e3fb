"""A whole cluster in one process: how fast it is there, what it weighs, and how fast a released device is used again.

`python -m bench cluster` prints the figures. The limits that they should reach are in `LIMITS`.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import uvloop
from bench._process import Dray
from bench.server import PODS, Connection, connect, head, pod, value_in, watch_lines

NODES = 100
DEVICES = 800
PLAIN_PODS = 200
ROUNDS = 30
TEMPLATES = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates"

LIMITS = {"up_seconds": 3, "up_again_seconds": 3, "memory_mib": 250, "released_to_bound_p95_ms": 100}

TEMPLATE = {
    "metadata": {"name": "one-gpu"},
    "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}}},
}


def up(directory: Path) -> Dray:
    """`dray up`, ready with all its nodes."""
    cluster = Dray(["up", "--nodes", str(NODES)], directory, until="nodes ")
    if f"nodes {NODES}/{NODES} ready" not in cluster.greeting:
        raise RuntimeError(f"the cluster did not start: {cluster.greeting!r}")
    return cluster


def plain_pod(name: str) -> bytes:
    """A pod without claims."""
    body = {"metadata": {"name": name}, "spec": {"containers": [{"name": "main", "image": "pause"}]}}
    return json.dumps(body).encode()


async def create(connection: Connection, server: Dray, path: str, body: bytes) -> None:
    """One object."""
    code, answer = await connection.call(head(server, "POST", path, len(body)), body)
    if code != 201:
        raise RuntimeError(f"POST {path}: {code} {answer[:300]!r}")


async def fill(server: Dray) -> float:
    """Seconds until every device is held and all pods run, from the first create."""
    clients = await connect(server, 16)
    await create(clients[0], server, TEMPLATES, json.dumps(TEMPLATE).encode())
    bodies = [pod(f"pod-{number}") for number in range(DEVICES)]
    bodies += [plain_pod(f"plain-{number}") for number in range(PLAIN_PODS)]
    began = time.perf_counter()

    async def client(connection: Connection, own: list[bytes]) -> None:
        for body in own:
            await create(connection, server, PODS, body)

    await asyncio.gather(*(client(one, bodies[number :: len(clients)]) for number, one in enumerate(clients)))
    while True:
        _, listing = await clients[0].call(head(server, "GET", PODS))
        if listing.count(b'"phase":"Running"') == len(bodies):
            break
        await asyncio.sleep(0.02)
    seconds = time.perf_counter() - began
    for connection in clients:
        connection.close()
    return seconds


async def release(server: Dray) -> list[float]:
    """Milliseconds from the deletion of a pod that holds a device to the binding of the pod that waits for one."""
    [connection] = await connect(server, 1)
    found: list[float] = []
    for number in range(ROUNDS):
        name = f"next-{number}"
        _, listing = await connection.call(head(server, "GET", f"{PODS}?limit=1"))
        revision = json.loads(listing)["metadata"]["resourceVersion"]
        await create(connection, server, PODS, pod(name))
        await asyncio.sleep(0.3)  # it is refused, and waits
        began = time.perf_counter()
        code, answer = await connection.call(head(server, "DELETE", f"{PODS}/pod-{number}?gracePeriodSeconds=0"))
        if code != 200:
            raise RuntimeError(f"DELETE pod-{number}: {code} {answer[:300]!r}")
        await bound(server, revision, name.encode())
        found.append((time.perf_counter() - began) * 1000)
    connection.close()
    return sorted(found)


async def bound(server: Dray, revision: str, name: bytes) -> None:
    """Returns when a pod has a node."""
    async for lines in watch_lines(server, PODS, revision):
        for line in lines:
            if value_in(line, b'"name":"') == name and b'"nodeName":"' in line:
                return


def run() -> dict[str, Any]:
    """All measurements; the names carry the units."""
    with tempfile.TemporaryDirectory() as directory:
        first = up(Path(directory))
        try:
            results = {"up_seconds": first.seconds, "thousand_pods_running_seconds": uvloop.run(fill(first))}
            results["memory_mib"] = first.memory() / 2**20
            times = uvloop.run(release(first))
        finally:
            first.stop()
        results["released_to_bound_median_ms"] = times[len(times) // 2]
        results["released_to_bound_p95_ms"] = times[int(len(times) * 0.95)]
        again = up(Path(directory))
        results["up_again_seconds"] = again.seconds
        results["memory_again_mib"] = again.memory() / 2**20
        again.stop()
    return {name: round(value, 2) for name, value in results.items()}


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
