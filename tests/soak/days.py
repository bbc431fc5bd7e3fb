"""Many bad days: seeds of the fault simulation in shards that can be ended and gone on with, and what they came across.

    python -m soak.days [--kind servers] --seeds 600 --jobs 2 [--first 123] [--seconds 600] [--record FILE]

Days of one control plane (`one`), of several servers on a simulated etcd (`servers`), histories of stores on a
simulated etcd (`stores`) and on a real one (`etcd`). A line of the record is a day. Days that are there are not lived
through again, unless the sources are another commit's. In the end it prints how many days there were, what went wrong
(exit code 1), and how often each fault met each state.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final, NamedTuple

from dray.process import virtual_loop
from fault_simulation import store_histories
from fault_simulation.coverage import FAULTS, STATES
from fault_simulation.simulation import day_of, several_servers, simulate

LONGEST_SECONDS: Final = 900.0
"""A history on a real etcd that takes longer hangs."""


def _one(seed: int) -> dict[str, Any]:
    return _lived(simulate(seed, day_of(seed)))


def _servers(seed: int) -> dict[str, Any]:
    return _lived(simulate(seed, several_servers(seed)))


def _lived(report: Any) -> dict[str, Any]:
    met = [[fault, state, count] for (fault, state), count in sorted(report.met.items())]
    return {"problems": list(report.problems), "writes": report.writes, "met": met}


def _stores(seed: int) -> dict[str, Any]:
    return {"writes": virtual_loop.run(store_histories.live(seed))}


def _etcd(seed: int) -> dict[str, Any]:
    import etcd_histories  # only who wants a real etcd needs it

    async def within_time() -> int:
        async with asyncio.timeout(LONGEST_SECONDS):
            return await etcd_histories.live(Path(directory), seed)

    with tempfile.TemporaryDirectory() as directory:
        return {"writes": asyncio.run(within_time())}


class Kind(NamedTuple):
    """How a seed is lived through, where seeds begin, and how many are asked for."""

    live: Callable[[int], dict[str, Any]]
    first: int
    seeds: int


KINDS: Final = {
    "one": Kind(_one, 10_000, 10_000),
    "servers": Kind(_servers, 0, 600),
    "stores": Kind(_stores, 0, 600),
    "etcd": Kind(_etcd, 0, 200),
}


def live(kind: str, seed: int) -> dict[str, Any]:
    """One day, as a line of the record."""
    day: dict[str, Any] = {"seed": seed, "problems": [], "writes": 0, "met": []}
    try:
        return day | KINDS[kind].live(seed)
    except Exception:
        return day | {"problems": [traceback.format_exc()]}


def commit() -> str:
    """What the sources are."""
    done = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def read(record: Path, version: str) -> list[dict[str, Any]]:
    """The days that are recorded of these sources."""
    days = []
    if record.exists():
        for line in record.read_text().splitlines():  # one that an end cut off is left out
            try:
                day = json.loads(line)
            except ValueError:
                continue
            if day["commit"] == version:
                days.append(day)
    return days


def live_through(kind: str, seeds: Iterable[int], jobs: int, seconds: float) -> Iterator[dict[str, Any]]:
    """Days as they end, until there are no more or the time is over; what has begun is finished."""
    deadline = time.monotonic() + seconds
    waiting = iter(seeds)
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:  # gRPC, once loaded, is not to be forked
        running: set[Future[dict[str, Any]]] = set()
        while True:
            while len(running) < jobs and time.monotonic() < deadline and (seed := next(waiting, None)) is not None:
                running.add(pool.submit(live, kind, seed))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            yield from (each.result() for each in done)


def summary(days: list[dict[str, Any]]) -> Iterator[str]:
    """What the days came across, line by line."""
    met: Counter[tuple[str, str]] = Counter()
    for day in days:
        for fault, state, count in day["met"]:
            met[fault, state] += count
    writes = sum(day["writes"] for day in days)
    cells = len(FAULTS) * len(STATES)
    yield f"{len(days)} days, {writes} writes checked, {len(met)} of {cells} pairs of a fault and a state"
    if met:
        width = max(map(len, STATES))
        yield " " * width + "".join(f"{fault:>17}" for fault in FAULTS)
        for state in STATES:
            yield f"{state:{width}}" + "".join(f"{met[fault, state]:17}" for fault in FAULTS)
    for day in days:
        yield from (f"seed {day['seed']}: {problem}" for problem in day["problems"])


def main(arguments: list[str] | None = None) -> int:
    """The exit code is 1 if anything went wrong on any day."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=KINDS, default="one")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--first", type=int, help="the first seed")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--record", type=Path, help=".soak/days-KIND.jsonl, if it is not given")
    given = parser.parse_args(arguments)
    kind = KINDS[given.kind]
    first = kind.first if given.first is None else given.first
    record = given.record or Path(f".soak/days-{given.kind}.jsonl")
    version = commit()
    days = read(record, version)
    known = {day["seed"] for day in days}
    record.parent.mkdir(parents=True, exist_ok=True)
    seeds = range(first, first + (kind.seeds if given.seeds is None else given.seeds))
    wanted = (seed for seed in seeds if seed not in known)
    with record.open("a") as file:
        print(file=file)  # behind a line that an end cut off
        for day in live_through(given.kind, wanted, given.jobs, given.seconds):
            days.append({"commit": version, **day})
            print(json.dumps(days[-1]), file=file, flush=True)
    print("\n".join(summary(days)))
    return int(any(day["problems"] for day in days))


if __name__ == "__main__":
    sys.exit(main())
