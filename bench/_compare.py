"""`python -m bench compare OLD NEW`: two checkouts side by side, so that the machine's mood is the same for both.

Servers of both are alive at once and asked in turns, some hundred requests each, because the speed of a machine
changes from one second to the next; what takes a whole cluster runs in turns of fresh ones. What is counted is CPU time
of dray's process, not the clock. Turns make pairs, and the ratio is the median of theirs: in 19 of 20 comparisons it
lies between the two figures behind it. A difference is real if 1 does not.
"""

from __future__ import annotations

import asyncio
import math
import statistics
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

import uvloop
from bench import custom_resources, load
from bench._process import Dray
from bench.server import PODS, Connection, connect, create_over, head, numbered

Pair = tuple[float, float]
"""CPU µs for a unit of work, in the old checkout and in the new one."""
Batch = Callable[[], Awaitable[object]]

PAIRS = 100
CLUSTERS = 6
"""Pairs of fresh clusters: with fewer, nothing can be said 19 times out of 20."""
CONNECTIONS = 16
READS = 32 * CONNECTIONS
CREATES = 200
LOADED_PODS = 2_000
DOUBT = 1 / 20


def compare(old: Path, new: Path) -> str:
    """A table of CPU per unit of work in both checkouts."""
    for checkout in (old, new):
        if not (checkout / "src" / "dray").is_dir():
            raise SystemExit(f"{checkout} is not a checkout of dray: there is no src/dray in it")
    lines = [f"{'CPU µs per':<24}{'old':>10}{'new':>10}{'ratio':>8}"]
    lines += [row(name, measure(old, new)) for name, measure in MEASURES.items()]
    return "\n".join(lines)


def row(name: str, pairs: Sequence[Pair]) -> str:
    """A line of the table."""
    before, after = (statistics.median(side) for side in zip(*pairs, strict=True))
    ratios = sorted(new / old for old, new in pairs)
    low, high = ratios[_left_out(len(ratios))], ratios[-1 - _left_out(len(ratios))]
    verdict = "less" if high < 1 else "more" if low > 1 else "no difference that is real"
    middle = statistics.median(ratios)
    return f"{name:<24}{before:>10.1f}{after:>10.1f}{middle:>8.3f}  ({low:.3f} to {high:.3f})  {verdict}"


def _left_out(count: int) -> int:
    """How many figures at each end do not matter, so that the median is among the others but for `DOUBT`."""
    tail, number = 0.0, 0
    while tail + math.comb(count, number) / 2**count <= DOUBT / 2:
        tail += math.comb(count, number) / 2**count
        number += 1
    if not number:
        raise ValueError(f"{count} pairs are too few to say anything")
    return number - 1


def _on_servers(
    prepare: Callable[[Dray, list[Connection]], Awaitable[Batch]], size: int, old: Path, new: Path
) -> list[Pair]:
    """Batches of so many requests to two servers in turns."""
    with (
        tempfile.TemporaryDirectory() as one,
        tempfile.TemporaryDirectory() as other,
        Dray(["server"], Path(one), checkout=old) as first,
        Dray(["server"], Path(other), checkout=new) as second,
    ):
        return uvloop.run(_in_turns((first, second), prepare, size))


async def _in_turns(
    servers: tuple[Dray, Dray], prepare: Callable[[Dray, list[Connection]], Awaitable[Batch]], size: int
) -> list[Pair]:
    batches = [await prepare(server, await connect(server, CONNECTIONS)) for server in servers]
    for batch in batches:
        await batch()  # what is done for the first time does not count

    async def spent(side: int) -> float:
        before = servers[side].cpu_seconds()
        await batches[side]()
        return (servers[side].cpu_seconds() - before) * 1e6 / size

    return await _pairs(spent, PAIRS)


async def _reads(server: Dray, connections: list[Connection]) -> Batch:
    await create_over(server, connections[:1], numbered("read", 1))
    request = head(server, "GET", f"{PODS}/read-000000")

    async def client(connection: Connection) -> None:
        for _ in range(READS // CONNECTIONS):
            await connection.call(request)

    async def batch() -> None:
        await asyncio.gather(*map(client, connections))

    return batch


async def _creates(server: Dray, connections: list[Connection]) -> Batch:
    names = numbered("pod")

    async def batch() -> None:
        await create_over(server, connections, islice(names, CREATES))

    return batch


async def _custom_creates(server: Dray, connections: list[Connection]) -> Batch:
    names = numbered("widget")
    await custom_resources.define(server, connections[0])

    async def batch() -> None:
        await custom_resources.create_over(server, connections, islice(names, CREATES))

    return batch


def _clusters(old: Path, new: Path) -> list[Pair]:
    """Pods with claims, bound by one fresh cluster after the other."""

    async def spent(side: int) -> float:
        return float(load.measure(500, 10, (old, new)[side], LOADED_PODS)["cpu_ms_per_pod"]) * 1000

    return uvloop.run(_pairs(spent, CLUSTERS))


async def _pairs(spent: Callable[[int], Awaitable[float]], count: int) -> list[Pair]:
    """What two sides have spent in so many turns; each goes first in every other one."""
    pairs = []
    for number in range(count):
        found = {side: await spent(side) for side in ((0, 1) if number % 2 else (1, 0))}
        pairs.append((found[0], found[1]))
    return pairs


MEASURES: dict[str, Callable[[Path, Path], list[Pair]]] = {
    "read of a pod": partial(_on_servers, _reads, READS),
    "create of a pod": partial(_on_servers, _creates, CREATES),
    "create of a custom one": partial(_on_servers, _custom_creates, CREATES),
    "pod with claim bound": _clusters,
}
