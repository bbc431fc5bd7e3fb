"""What grows with the cluster: pods per second, CPU per pod, memory, and how long a small read takes under that load.

Each number of nodes is a fresh `dray up` with 8 devices on each node, filled by the load generator of the
specification, while one client reads a namespace over and over. `tools/growth_picture.py` draws what comes of it.
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
from bench.load import CONTROLLERS, GENERATOR
from bench.server import connect, head
from bench.waits import generate

NODES = (250, 500, 1_000, 2_000, 5_000)
DEVICES, PODS = 8, 2_000
LOOK_SECONDS = 0.01


async def _fill(server: Dray, nodes: int) -> tuple[dict[str, Any], list[float]]:
    """What the generator says in the end, and the milliseconds of each small read meanwhile, in order of size."""
    load = generate(server, "--nodes", str(nodes), "--devices", str(DEVICES), "--pods", str(PODS))
    [connection] = await connect(server, 1)
    request = head(server, "GET", "/api/v1/namespaces/default")
    times = []
    while load.poll() is None:
        began = time.perf_counter()
        await connection.call(request)
        times.append((time.perf_counter() - began) * 1000)
        await asyncio.sleep(LOOK_SECONDS)
    connection.close()
    if load.returncode:
        raise RuntimeError(f"the load generator ended with code {load.returncode}")
    return json.loads(load.communicate()[0]), sorted(times)


def _measure(nodes: int) -> dict[str, float]:
    command = ["up", "--nodes", "0", "--controllers", CONTROLLERS]
    with tempfile.TemporaryDirectory() as name, Dray(command, Path(name) / "state") as server:
        server.settle()
        before = server.cpu_seconds()
        said, times = uvloop.run(_fill(server, nodes))
        return {
            "nodes": nodes,
            "pods_per_second": said["bound_per_s"],
            "cpu_ms_per_pod": round((server.cpu_seconds() - before) * 1000 / PODS, 3),
            "memory_mib": round(server.memory() / 2**20, 1),
            "small_get_p50_ms": round(times[len(times) // 2], 1),
            "small_get_p99_ms": round(times[int(len(times) * 0.99)], 1),
        }


def run() -> dict[str, Any]:
    """A row for each number of nodes; the names carry the units. Set-up of nodes and slices counts for CPU."""
    if not GENERATOR.exists():
        raise SystemExit(f"{GENERATOR} is needed for this benchmark")
    return {"devices_per_node": DEVICES, "pods": PODS, "rows": [_measure(nodes) for nodes in NODES]}
