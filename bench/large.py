"""A large cluster in one `dray up`: 50,000 nodes of 8 devices, 100,000 pods with claims, and a start with all of them.

`python -m bench large` fills it with the load of the specification and compares with 500 nodes in the same run. Takes
some minutes. The limits that it should reach are in `LIMITS`.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench._process import Dray
from bench.load import CONTROLLERS, GENERATOR, generate, measure

NODES, DEVICES, PODS = 50_000, 8, 100_000
FEW_NODES, FEW_PODS = 500, 4_000
"""What it is compared with: no more pods than there are devices."""

LIMITS = {"memory_mib": 4096, "up_again_seconds": 20, "memory_again_mib": 4096, "times_per_pod_with_500_nodes": 1.3}


def run(nodes: int = NODES, pods: int = PODS) -> dict[str, Any]:
    """All measurements; the names carry the units."""
    if not GENERATOR.exists():
        raise SystemExit(f"{GENERATOR} is needed for this benchmark")
    few = measure(FEW_NODES, DEVICES, pods=FEW_PODS)
    found: dict[str, Any] = {"nodes": nodes, "devices": nodes * DEVICES, "pods": pods}
    command = ["up", "--nodes", "0", "--controllers", CONTROLLERS]
    with tempfile.TemporaryDirectory() as name:
        with Dray(command, Path(name)) as server:
            server.settle()
            before = server.cpu_seconds()
            said = generate(f"https://127.0.0.1:{server.port}", server.token, nodes, DEVICES, pods)
            found |= {
                "setup_seconds": said["setup_s"],
                "pods_per_second": said["bound_per_s"],
                "pods_per_second_with_500_nodes": few["bound_per_s"],
                "times_per_pod_with_500_nodes": round(few["bound_per_s"] / said["bound_per_s"], 2),
                "cpu_ms_per_pod": round((server.cpu_seconds() - before) * 1000 / pods, 3),
                "memory_mib": round(server.memory() / 2**20),
            }
        with Dray(command, Path(name), until="nodes ") as server:
            found["up_again_seconds"] = round(server.seconds, 1)
            time.sleep(5)
            found["memory_again_mib"] = round(server.memory() / 2**20)
    return found


if __name__ == "__main__":
    print(json.dumps(run(*map(int, sys.argv[1:])), indent=2))
