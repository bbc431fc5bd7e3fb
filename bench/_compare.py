"""`python -m bench compare OLD NEW`: two checkouts side by side, so that the machine's mood is the same for both.

Rounds alternate, each with fresh processes; what is counted is CPU time of dray's process, not the clock. A difference
is called real when every round of one side is better than every round of the other.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import uvloop
from bench import load
from bench._process import Dray
from bench.server import PODS, Connection, connect, create_pods, head, numbered

ROUNDS = 5
READS = 20_000
CREATES = 5_000
LOADED_PODS = 2_000


def compare(old: Path, new: Path, rounds: int = ROUNDS) -> str:
    """A table of CPU per unit of work in both checkouts."""
    for checkout in (old, new):
        if not (checkout / "src" / "dray").is_dir():
            raise SystemExit(f"{checkout} is not a checkout of dray: there is no src/dray in it")
    found: dict[str, tuple[list[float], list[float]]] = {}
    for number in range(rounds):
        for name, measure in MEASURES.items():
            sides = ((old, 0), (new, 1)) if number % 2 else ((new, 1), (old, 0))
            for checkout, side in sides:
                found.setdefault(name, ([], []))[side].append(measure(checkout))
    lines = [f"{'CPU µs per':<22}{'old':>10}{'new':>10}{'ratio':>8}"]
    lines += [_row(name, *sides) for name, sides in found.items()]
    return "\n".join(lines)


def _row(name: str, old: Sequence[float], new: Sequence[float]) -> str:
    is_real = max(new) < min(old) or max(old) < min(new)
    before, after = statistics.median(old), statistics.median(new)
    verdict = ("less" if after < before else "more") if is_real else "no difference that is real"
    return f"{name:<22}{before:>10.1f}{after:>10.1f}{after / before:>8.2f}  {verdict}"


def _read_cpu(checkout: Path) -> float:
    with tempfile.TemporaryDirectory() as name, Dray(["server"], Path(name), checkout=checkout) as server:
        uvloop.run(create_pods(server, 1, numbered("read", 1)))
        uvloop.run(_read(server, 1000))
        before = server.cpu_seconds()
        uvloop.run(_read(server, READS))
        return (server.cpu_seconds() - before) * 1e6 / READS


async def _read(server: Dray, count: int) -> None:
    connections = await connect(server, 16)
    request = head(server, "GET", f"{PODS}/read-000000")
    rest = iter(range(count))

    async def client(connection: Connection) -> None:
        for _ in rest:
            await connection.call(request)

    await asyncio.gather(*map(client, connections))


def _create_cpu(checkout: Path) -> float:
    with tempfile.TemporaryDirectory() as name, Dray(["server"], Path(name), checkout=checkout) as server:
        uvloop.run(create_pods(server, 16, numbered("warm", 500)))
        before = server.cpu_seconds()
        uvloop.run(create_pods(server, 16, numbered("pod", CREATES)))
        return (server.cpu_seconds() - before) * 1e6 / CREATES


def _pod_cpu(checkout: Path) -> float:
    return float(load.measure(500, 10, checkout, LOADED_PODS)["cpu_ms_per_pod"]) * 1000


MEASURES: dict[str, Callable[[Path], float]] = {
    "read of a pod": _read_cpu,
    "create of a pod": _create_cpu,
    "pod with claim bound": _pod_cpu,
}
