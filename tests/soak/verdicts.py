"""Many random clusters on which everybody must say the same, in a run that can be ended and gone on with.

    python -m soak.verdicts --states 10000 --record .soak/verdicts.jsonl [--seconds 600]

A number is a state, an odd one (`odd_states`) and a rare one (`rare_states`). A line of the record is a batch of them.
Batches that are there are not tried again, unless the sources are another commit's. In the end it prints how many
states there were and what was told differently (exit code 1).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from soak.days import commit, read
from verdict_world import find_differences, find_odd_differences, find_rare_differences

BATCH = 50


def main(arguments: list[str] | None = None) -> int:
    """The exit code is 1 if anybody said something else than the others."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--states", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="begin with the batch of this state")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--record", type=Path, default=Path(".soak/verdicts.jsonl"))
    given = parser.parse_args(arguments)
    version, deadline = commit(), time.monotonic() + given.seconds
    batches: list[dict[str, Any]] = read(given.record, version)
    known = {batch["first"] for batch in batches}
    given.record.parent.mkdir(parents=True, exist_ok=True)
    with given.record.open("a") as file:
        print(file=file)  # behind a line that an end cut off
        for first in range(given.first // BATCH * BATCH, given.states, BATCH):
            if first in known:
                continue
            if time.monotonic() > deadline:
                break
            last = min(first + BATCH, given.states)
            looks = (find_differences, find_odd_differences, find_rare_differences)
            differences = [why for number in range(first, last) for look in looks for why in look(number)]
            batches.append({"commit": version, "first": first, "states": last - first, "differences": differences})
            print(json.dumps(batches[-1]), file=file, flush=True)
    differences = [why for batch in batches for why in batch["differences"]]
    print(
        "\n".join((*differences, f"{sum(batch['states'] for batch in batches)} states, {len(differences)} differences"))
    )
    return int(bool(differences))


if __name__ == "__main__":
    sys.exit(main())
