"""Pods with a claim each, from creation to binding, on a whole `dray up`: the load of the neutral generator.

`python -m bench load` runs `shared/bench/dra_load.py` of the specification, once with few nodes and once with many, in
the same process group of two cores as the cluster. The limits that it should reach are in `LIMITS`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench._process import HERE, Dray

GENERATOR = HERE.parent / "shared" / "bench" / "dra_load.py"
PODS = 5000
CONTROLLERS = "*,-node-lifecycle-controller"
"""The nodes of the load have no kubelets: nobody should find out."""

LIMITS = {"pods_per_second": 1000, "cpu_ms_per_pod": 0.65, "times_per_pod_with_5000_nodes": 1.5}


def measure(nodes: int, devices: int, checkout: Path = HERE, pods: int = PODS) -> dict[str, Any]:
    """One load on a fresh cluster, as the generator reports it, and `cpu_ms_per_pod` of the cluster's process."""
    command = ["up", "--nodes", "0", "--controllers", CONTROLLERS]
    with tempfile.TemporaryDirectory() as name, Dray(command, Path(name) / "state", checkout=checkout) as cluster:
        load = [sys.executable, str(GENERATOR), "--server", f"https://127.0.0.1:{cluster.port}"]
        load += ["--token", cluster.token, "--nodes", str(nodes), "--devices", str(devices), "--pods", str(pods)]
        before = cluster.cpu_seconds()
        report = subprocess.run(load, capture_output=True, text=True, check=True)
        spent = cluster.cpu_seconds() - before
    result: dict[str, Any] = json.loads(report.stdout)
    return result | {"cpu_ms_per_pod": round(spent * 1000 / pods, 3)}


def run() -> dict[str, Any]:
    """All measurements; the names carry the units."""
    if not GENERATOR.exists():
        raise SystemExit(f"{GENERATOR} is needed for this benchmark")
    few, many = measure(500, 10), measure(5000, 8)
    return {
        "pods_per_second": few["bound_per_s"],
        "cpu_ms_per_pod": few["cpu_ms_per_pod"],
        "cpu_ms_per_pod_with_5000_nodes": many["cpu_ms_per_pod"],
        "pods_per_second_with_5000_nodes": many["bound_per_s"],
        "times_per_pod_with_5000_nodes": round(few["bound_per_s"] / many["bound_per_s"], 2),
    }
