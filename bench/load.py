"""Pods with a claim each, from creation to binding, on a whole `dray up`: the load of the neutral generator.

`python -m bench load` runs `shared/bench/dra_load.py` of the specification, once with few nodes and once with many, in
the same process group of two cores as the cluster. The limits that it should reach are in `LIMITS`.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

GENERATOR = Path(__file__).resolve().parents[2] / "shared" / "bench" / "dra_load.py"
PODS = 5000
CONTROLLERS = "*,-node-lifecycle-controller"
"""The nodes of the load have no kubelets: nobody should find out."""

LIMITS = {"pods_per_second": 1000, "times_per_pod_with_5000_nodes": 1.5}


def measure(nodes: int, devices: int) -> dict[str, Any]:
    """One load on a fresh cluster, as the generator reports it."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name) / "state"
        dray = Path(sys.executable).with_name("dray")
        command = [str(dray), "up", "--dir", str(directory), "--port", "0"]
        command += ["--nodes", "0", "--controllers", CONTROLLERS]
        cluster = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert cluster.stdout is not None
            url = next(line for line in cluster.stdout if "https://" in line).split("https://")[1].split()[0]
            token = (directory / "admin-token").read_text().strip()
            load = [sys.executable, str(GENERATOR), "--server", f"https://{url}", "--token", token]
            load += ["--nodes", str(nodes), "--devices", str(devices), "--pods", str(PODS)]
            report = subprocess.run(load, capture_output=True, text=True, check=True)
        finally:
            cluster.send_signal(signal.SIGTERM)
            cluster.communicate(timeout=20)
    result: dict[str, Any] = json.loads(report.stdout)
    return result


def run() -> dict[str, Any]:
    """All measurements; the names carry the units."""
    if not GENERATOR.exists():
        raise SystemExit(f"{GENERATOR} is needed for this benchmark")
    few, many = measure(500, 10), measure(5000, 8)
    return {
        "pods_per_second": few["bound_per_s"],
        "pods_per_second_with_5000_nodes": many["bound_per_s"],
        "times_per_pod_with_5000_nodes": round(few["bound_per_s"] / many["bound_per_s"], 2),
    }
