"""Who waits for whom: the longest turn of the loop, and small reads, while large things are asked for and pods come.

`python -m bench waits` fills a `dray up` with the load of the specification, and then does everything at once: plain
pods are created, ten watchers look on, tables and lists of everything are read over and over, and one client reads a
single pod. Turns are measured as `bench._measured` says; small reads on a server that is started again without that, by
a process that does nothing else. The limits that it should reach are in `LIMITS`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import uvloop
from bench._process import Address, Dray
from bench.load import CONTROLLERS, GENERATOR
from bench.server import connect, head, watch_lines

NODES, DEVICES, PODS = 5_000, 8, 20_000
MORE = 3_000
"""Plain pods that come while everything else is asked for."""
WATCHERS = 10
ALL = "/api/v1/pods"
RESOURCE = "/apis/resource.k8s.io/v1"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
LARGE = (
    (ALL, TABLE),
    (ALL, "application/json"),
    (f"{RESOURCE}/resourceclaims", TABLE),
    (f"{RESOURCE}/resourceslices", "application/json"),
    ("/openapi/v2", "application/json"),
    ("/metrics", "text/plain"),
)

LIMITS = {"longest_turn_ms": 20, "small_get_p99_ms": 25, "memory_mib": 450, "memory_again_mib": 450}


def generate(server: Dray, *options: str) -> subprocess.Popen[str]:
    """The neutral load generator."""
    line = [sys.executable, str(GENERATOR), "--server", f"https://127.0.0.1:{server.port}", "--token", server.token]
    return subprocess.Popen([*line, *options], stdout=subprocess.PIPE, text=True)


async def everything_at_once(server: Dray, namespace: str) -> list[float]:
    """Milliseconds of each small read."""
    crowd = multiprocessing.get_context("spawn").Process(target=_look_on, args=(Address(server.port, server.token),))
    crowd.start()
    load = generate(server, "--nodes", "0", "--pods", str(MORE), "--plain", "--namespace", namespace, "--settle", "0")
    [connection] = await connect(server, 1)
    request = head(server, "GET", "/api/v1/namespaces/load/pods/pod-000001")
    times = []
    while load.poll() is None:
        began = time.perf_counter()
        await connection.call(request)
        times.append((time.perf_counter() - began) * 1000)
        await asyncio.sleep(0.01)
    crowd.terminate()
    crowd.join()
    connection.close()
    return sorted(times)


def _look_on(server: Address) -> None:
    """A process that watches and reads what is large, until it is ended."""

    async def all_of_them() -> None:
        await asyncio.gather(*(_watch(server) for _ in range(WATCHERS)), _read_large(server))

    uvloop.run(all_of_them())


async def _watch(server: Address) -> None:
    """Everything that happens to pods from now on."""
    [connection] = await connect(server, 1)
    _, body = await connection.call(head(server, "GET", f"{ALL}?limit=1"))
    connection.close()
    async for _ in watch_lines(server, ALL, json.loads(body)["metadata"]["resourceVersion"]):
        pass


async def _read_large(server: Address) -> None:
    [connection] = await connect(server, 1)
    with contextlib.closing(connection):
        while True:
            for path, accept in LARGE:
                await connection.call(head(server, "GET", path).replace(b"application/json", accept.encode()))


def longest_turn(file: Path, since: float) -> float:
    """Milliseconds of processor time of the longest turn from some moment on; those below ten are not written down."""
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    return max((row["cpu"] * 1000 for row in rows if "cpu" in row and row["at"] >= since), default=10.0)


def run(nodes: int = NODES, pods: int = PODS) -> dict[str, Any]:
    """All measurements; the names carry the units."""
    if not GENERATOR.exists():
        raise SystemExit(f"{GENERATOR} is needed for this benchmark")
    results: dict[str, Any] = {"nodes": nodes, "devices": nodes * DEVICES, "pods": pods}
    command = ["up", "--nodes", "0", "--controllers", CONTROLLERS]
    with tempfile.TemporaryDirectory() as name:
        turns, state = Path(name) / "turns", Path(name) / "state"
        with Dray(command, state, turns=turns) as server:
            since = time.monotonic()
            options = ["--nodes", str(nodes), "--devices", str(DEVICES), "--pods", str(pods)]
            generate(server, *options).communicate()
            results["longest_turn_ms_under_load"] = round(longest_turn(turns, since), 1)
            results["memory_mib"] = round(server.memory() / 2**20, 1)
            since = time.monotonic()
            uvloop.run(everything_at_once(server, "more"))
            results["longest_turn_ms"] = round(longest_turn(turns, since), 1)
        with Dray(command, state, until="nodes ") as server:
            results["up_again_seconds"] = round(server.seconds, 2)
            server.settle()
            results["memory_again_mib"] = round(server.memory() / 2**20, 1)
            times = uvloop.run(everything_at_once(server, "and-more"))
            results["small_get_p50_ms"] = round(times[len(times) // 2], 1)
            results["small_get_p99_ms"] = round(times[int(len(times) * 0.99)], 1)
    return results


if __name__ == "__main__":
    print(json.dumps(run(*map(int, sys.argv[1:])), indent=2))
