"""Many bad days: seeds of the fault simulation in shards that can be ended and gone on with, and what they came across.

    python -m soak.days --seeds 10000 --jobs 2 --record .soak/days.jsonl [--seconds 600]

A line of the record is a day. Days that are there are not lived through again, unless the sources are another commit's:
the record begins anew then. In the end it prints how many days there were, what went wrong (exit code 1), and how often
each fault met each state.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any

from fault_simulation.coverage import FAULTS, STATES
from fault_simulation.simulation import simulate

FIRST_SEED = 10_000


def live(seed: int) -> dict[str, Any]:
    """One day, as a line of the record."""
    report = simulate(seed)
    met = [[fault, state, count] for (fault, state), count in sorted(report.met.items())]
    return {"seed": seed, "problems": list(report.problems), "writes": report.writes, "met": met}


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


def live_through(seeds: Iterable[int], jobs: int, seconds: float) -> Iterator[dict[str, Any]]:
    """Days as they end, until there are no more or the time is over; what has begun is finished."""
    deadline = time.monotonic() + seconds
    waiting = iter(seeds)
    with ProcessPoolExecutor(jobs) as pool:
        running: set[Future[dict[str, Any]]] = set()
        while True:
            while len(running) < jobs and time.monotonic() < deadline and (seed := next(waiting, None)) is not None:
                running.add(pool.submit(live, seed))
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
    width = max(map(len, STATES))
    yield " " * width + "".join(f"{fault:>17}" for fault in FAULTS)
    for state in STATES:
        yield f"{state:{width}}" + "".join(f"{met[fault, state]:17}" for fault in FAULTS)
    for day in days:
        yield from (f"seed {day['seed']}: {problem}" for problem in day["problems"])


def main(arguments: list[str] | None = None) -> int:
    """The exit code is 1 if anything went wrong on any day."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--record", type=Path, default=Path(".soak/days.jsonl"))
    given = parser.parse_args(arguments)
    version = commit()
    days = read(given.record, version)
    known = {day["seed"] for day in days}
    given.record.parent.mkdir(parents=True, exist_ok=True)
    wanted = (seed for seed in range(FIRST_SEED, FIRST_SEED + given.seeds) if seed not in known)
    with given.record.open("a") as file:
        print(file=file)  # behind a line that an end cut off
        for day in live_through(wanted, given.jobs, given.seconds):
            days.append({"commit": version, **day})
            print(json.dumps(days[-1]), file=file, flush=True)
    print("\n".join(summary(days)))
    return int(any(day["problems"] for day in days))


if __name__ == "__main__":
    sys.exit(main())
