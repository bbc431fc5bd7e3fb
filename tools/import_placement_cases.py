"""Bring the recorded placement cases into the repository, without the texts of upstream's messages.

    python tools/import_placement_cases.py ../shared/conformance/placement.open.jsonl

writes tests/conformance/data/placement.jsonl.xz: objects, decisions, groups, scores, conditions and times.
"""

from __future__ import annotations

import json
import lzma
import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent.parent / "tests" / "conformance" / "data" / "placement.jsonl.xz"


def import_cases(source: Path, target: Path) -> int:
    """Copy the cases and say how many there are."""
    cases = [json.loads(line) for line in source.read_text().splitlines() if line]
    lines = [json.dumps(_pick(case), ensure_ascii=False, separators=(",", ":")) for case in cases]
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(lzma.compress(("\n".join(lines) + "\n").encode(), preset=9))
    return len(lines)


def _pick(case: dict[str, Any]) -> dict[str, Any]:
    kept = {key: case[key] for key in ("id", "tags", "now", "objects", "placement")}
    expect = case["expect"]
    first = {
        **_step({**expect, "now": case["now"]}),
        "groups": [{"name": group["groupName"], "clusters": group["clusters"]} for group in expect["groups"]],
        "scores": expect["firstSync"]["scores"],
    }
    return {**kept, "steps": [first, *map(_step, expect.get("later", ()))]}


def _step(step: dict[str, Any]) -> dict[str, Any]:
    conditions = {kind: [entry["status"], entry["reason"]] for kind, entry in step["conditions"].items()}
    return {key: step[key] for key in ("now", "decisions", "requeueAfterSeconds")} | {"conditions": conditions}


def main() -> None:
    """Run with the file of cases as the only argument."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(f"{import_cases(Path(sys.argv[1]), TARGET)} cases in {TARGET}")


if __name__ == "__main__":
    main()
