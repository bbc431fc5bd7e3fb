"""A whole cluster in one process: how fast it is there, what it weighs, and how fast a released device is used again.

`python -m bench cluster` prints the figures. The limits that they should reach are in `LIMITS`.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import uvloop
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


class Up:
    """`dray up` as a process of its own; `seconds` is from its birth to its first status line."""

    def __init__(self, directory: Path) -> None:
        dray = Path(sys.executable).with_name("dray")
        command = [str(dray), "up", "--dir", str(directory), "--port", "0", "--nodes", str(NODES)]
        began = time.perf_counter()
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.directory = directory
        self.port = 0
        line = ""
        for line in self._process.stdout:
            if "https://" in line:
                self.port = int(line.split("https://")[1].split()[0].rsplit(":", 1)[1])
            if line.startswith("nodes "):
                break
        self.seconds = time.perf_counter() - began
        if f"nodes {NODES}/{NODES} ready" not in line:
            raise RuntimeError(f"the cluster did not start: {line!r}")
        self.token = (directory / "admin-token").read_text().strip()

    def memory_mib(self) -> float:
        """What the process keeps in memory, files that it maps left out."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        fields = dict(line.split(":", 1) for line in status.splitlines())
        return int(fields["RssAnon"].split()[0]) / 1024

    def stop(self) -> None:
        """Ends the process as an operator would."""
        self._process.send_signal(signal.SIGTERM)
        self._process.communicate(timeout=20)


def plain_pod(name: str) -> bytes:
    """A pod without claims."""
    body = {"metadata": {"name": name}, "spec": {"containers": [{"name": "main", "image": "pause"}]}}
    return json.dumps(body).encode()


async def create(connection: Connection, server: Any, path: str, body: bytes) -> None:
    """One object."""
    code, answer = await connection.call(head(server, "POST", path, len(body)), body)
    if code != 201:
        raise RuntimeError(f"POST {path}: {code} {answer[:300]!r}")


async def fill(server: Any) -> float:
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


async def release(server: Any) -> list[float]:
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


async def bound(server: Any, revision: str, name: bytes) -> None:
    """Returns when a pod has a node."""
    async for lines in watch_lines(server, revision):
        for line in lines:
            if value_in(line, b'"name":"') == name and b'"nodeName":"' in line:
                return


def run() -> dict[str, Any]:
    """All measurements; the names carry the units."""
    with tempfile.TemporaryDirectory() as directory:
        first = Up(Path(directory))
        try:
            results = {"up_seconds": first.seconds, "thousand_pods_running_seconds": uvloop.run(fill(first))}
            results["memory_mib"] = first.memory_mib()
            times = uvloop.run(release(first))
        finally:
            first.stop()
        results["released_to_bound_median_ms"] = times[len(times) // 2]
        results["released_to_bound_p95_ms"] = times[int(len(times) * 0.95)]
        again = Up(Path(directory))
        results["up_again_seconds"] = again.seconds
        results["memory_again_mib"] = again.memory_mib()
        again.stop()
    return {name: round(value, 2) for name, value in results.items()}


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
