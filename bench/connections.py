"""Connections that come and go: what is left of them in memory. `python -m bench connections` prints the figures.

Each connects over TLS, asks for one thing and goes, as scripts with curl and probes do.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import uvloop
from bench._process import Dray
from bench.server import connect, head

CONNECTIONS = 26_000
AT_ONCE = 50

LIMITS = {"memory_after_mib": 90}


async def come_and_go(server: Dray, count: int) -> None:
    """So many connections, some at a time."""
    request = head(server, "GET", "/version")
    for _ in range(0, count, AT_ONCE):
        connections = await connect(server, AT_ONCE)
        await asyncio.gather(*(connection.call(request) for connection in connections))
        for connection in connections:
            connection.close()


def run(count: int = CONNECTIONS) -> dict[str, Any]:
    """All measurements; the names carry the units."""
    with tempfile.TemporaryDirectory() as name, Dray(["server"], Path(name)) as server:
        uvloop.run(come_and_go(server, 500))
        before, spent = server.memory(), server.cpu_seconds()
        uvloop.run(come_and_go(server, count))
        after = server.memory()
        spent = server.cpu_seconds() - spent
    return {
        "connections": count,
        "memory_before_mib": round(before / 2**20, 1),
        "memory_after_mib": round(after / 2**20, 1),
        "bytes_left_per_connection": round((after - before) / count),
        "cpu_ms_per_connection": round(spent * 1000 / count, 3),
    }


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]) if len(sys.argv) > 1 else CONNECTIONS), indent=2))
