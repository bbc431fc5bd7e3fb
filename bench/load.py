"""Pods with a claim each, from creation to binding, on a whole `dray up`: the load of the neutral generator.

`python -m bench load` runs `shared/bench/dra_load.py` of the specification, once with few nodes and once with many, in
the same process group of two cores as the cluster. What counts is CPU time of dray's process (user and system, without
the load generator), because neighbours on the machine change it least; `cpu_us_per_pod_by_part` says where it goes.
Each run adds a row to `bench/history.json`. The limits that it should reach are in `LIMITS`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench import _sampling
from bench._process import HERE, Dray

GENERATOR = HERE.parent / "shared" / "bench" / "dra_load.py"
PODS = 5000
CONTROLLERS = "*,-node-lifecycle-controller"
"""The nodes of the load have no kubelets: nobody should find out."""

LIMITS = {"pods_per_second": 1000, "cpu_ms_per_pod": 0.65, "times_per_pod_with_5000_nodes": 1.5}


HISTORY = Path(__file__).with_name("history.json")


def measure(nodes: int, devices: int, checkout: Path = HERE, pods: int = PODS, *options: str) -> dict[str, Any]:
    """One load on a fresh cluster, as the generator reports it, and `cpu_ms_per_pod` of the cluster's process."""
    with tempfile.TemporaryDirectory() as name, _cluster(Path(name), checkout) as cluster:
        cluster.settle()
        before = cluster.cpu_seconds()
        result = _generate(cluster, nodes, devices, pods, *options)
        spent = cluster.cpu_seconds() - before
    return result | {"cpu_ms_per_pod": round(spent * 1000 / pods, 3)}


def measure_parts(nodes: int, devices: int, checkout: Path = HERE, pods: int = PODS) -> dict[str, float]:
    """CPU µs per pod by part of its path, of a run of its own: looking costs about a hundredth."""
    with tempfile.TemporaryDirectory() as name, _cluster(Path(name), checkout, Path(name) / "samples") as cluster:
        cluster.settle()
        cluster.begin_sampling()
        _generate(cluster, nodes, devices, pods)
        spent = _sampling.parts(cluster.sampled())
    return {part: round(ns / 1000 / pods, 1) for part, ns in spent.items()}


def _cluster(directory: Path, checkout: Path, samples: Path | None = None) -> Dray:
    command = ["up", "--nodes", "0", "--controllers", CONTROLLERS]
    return Dray(command, directory / "state", checkout=checkout, samples=samples)


def _generate(cluster: Dray, nodes: int, devices: int, pods: int, *options: str) -> dict[str, Any]:
    return generate(f"https://127.0.0.1:{cluster.port}", cluster.token, nodes, devices, pods, *options)


def generate(server: str, token: str, nodes: int, devices: int, pods: int, *options: str) -> dict[str, Any]:
    """One load on whatever API server that is, as the generator reports it."""
    load = [sys.executable, str(GENERATOR), "--server", server, "--token", token]
    load += ["--nodes", str(nodes), "--devices", str(devices), "--pods", str(pods), *options]
    result: dict[str, Any] = json.loads(subprocess.run(load, capture_output=True, text=True, check=True).stdout)
    return result


def run() -> dict[str, Any]:
    """All measurements; the names carry the units. The history gets a row."""
    if not GENERATOR.exists():
        raise SystemExit(f"{GENERATOR} is needed for this benchmark")
    few, plain, many = measure(500, 10), measure(500, 10, HERE, PODS, "--plain"), measure(5000, 8)
    found = {
        "pods_per_second": few["bound_per_s"],
        "plain_pods_per_second": plain["bound_per_s"],
        "cpu_ms_per_pod": few["cpu_ms_per_pod"],
        "cpu_ms_per_plain_pod": plain["cpu_ms_per_pod"],
        "cpu_ms_per_pod_with_5000_nodes": many["cpu_ms_per_pod"],
        "cpu_us_per_pod_by_part": measure_parts(500, 10),
        "pods_per_second_with_5000_nodes": many["bound_per_s"],
        "times_per_pod_with_5000_nodes": round(few["bound_per_s"] / many["bound_per_s"], 2),
    }
    _remember(found)
    return found


def _remember(found: dict[str, Any]) -> None:
    """Adds a row to the history: what a commit costs, on whatever machine that was."""
    rows = json.loads(HISTORY.read_text()) if HISTORY.exists() else []
    row = {
        "commit": _git("rev-parse", "--short=10", "HEAD"),
        "date": _git("show", "-s", "--format=%cs", "HEAD"),
        "is_changed": bool(_git("status", "--porcelain", "src")),
    }
    rows.append(row | found)
    HISTORY.write_text(json.dumps(rows, indent=1) + "\n")


def _git(*command: str) -> str:
    return subprocess.run(["git", "-C", str(HERE), *command], capture_output=True, text=True, check=True).stdout.strip()
