"""The same load on dray and on Kubernetes' own control plane, one after the other in one run, and how they compare.

`PEERS=dir python -m bench peers`, where `dir` has kube-apiserver, kube-scheduler, kube-controller-manager and etcd of
one release. Both are durable and speak TLS; Kubernetes' components may ask as often as they like (`UNLIMITED`), so
that what is compared is work, not rations. CPU time is that of all processes of each, without the load generator.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from bench import load
from bench._process import HERE, cpu_seconds

sys.path.append(str(HERE / "tests"))
from patience import eventually
from peer_processes import kube_apiserver, peers_directory

NODES, DEVICES, PODS = 500, 10, 2500
UNLIMITED = ("--kube-api-qps=10000", "--kube-api-burst=10000")
CONTROLLERS = ("--controllers=*,-node-lifecycle-controller", "--use-service-account-credentials")
"""The nodes of the load have no kubelets: nobody should find out. Each controller has its own rights."""

COMPONENTS: dict[str, tuple[str, ...]] = {"kube-scheduler": (), "kube-controller-manager": CONTROLLERS}
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"

LIMITS = {"times_the_pods_per_second": 50, "times_the_plain_pods_per_second": 12}


def on_kubernetes(peers: Path, *options: str) -> dict[str, Any]:
    """One load on a fresh control plane of Kubernetes, as the generator reports it, and `cpu_ms_per_pod`."""
    with tempfile.TemporaryDirectory() as name, kube_apiserver(peers, Path(name), durable=True) as server:
        for component, flags in COMPONENTS.items():
            server.start_component(component, *UNLIMITED, *flags)
        # Whoever has its lease has started.
        eventually(lambda: all(server.ask("GET", f"{LEASES}/{component}") for component in COMPONENTS))
        before = sum(map(cpu_seconds, server.running.pids))
        result = load.generate(server.url, "admin", NODES, DEVICES, PODS, *options)
        spent = sum(map(cpu_seconds, server.running.pids)) - before
    return result | {"cpu_ms_per_pod": round(spent * 1000 / PODS, 3)}


def run() -> dict[str, Any]:
    """All measurements; the names carry the units. Nothing without Kubernetes' binaries."""
    peers = peers_directory()
    if peers is None or not load.GENERATOR.exists():
        return {"skipped": f"needs {load.GENERATOR.name} of the specification, and PEERS=dir with Kubernetes' binaries"}
    found: dict[str, Any] = {"nodes": NODES, "devices": NODES * DEVICES, "pods": PODS}
    for prefix, options in (("", ()), ("plain_", ("--plain",))):
        own = load.measure(NODES, DEVICES, HERE, PODS, *options)
        other = on_kubernetes(peers, *options)
        found |= {
            f"{prefix}pods_per_second": own["bound_per_s"],
            f"{prefix}pods_per_second_of_kubernetes": other["bound_per_s"],
            f"times_the_{prefix}pods_per_second": round(own["bound_per_s"] / other["bound_per_s"], 1),
            f"cpu_ms_per_{prefix}pod": own["cpu_ms_per_pod"],
            f"cpu_ms_per_{prefix}pod_of_kubernetes": other["cpu_ms_per_pod"],
            f"times_less_cpu_per_{prefix}pod": round(other["cpu_ms_per_pod"] / own["cpu_ms_per_pod"], 1),
        }
    return found
