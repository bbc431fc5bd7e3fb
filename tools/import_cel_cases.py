"""Bring the recorded CEL cases into the repository, without the texts of upstream's messages.

    python tools/import_cel_cases.py ../shared/conformance/cel.open.jsonl

writes tests/conformance/data/cel.jsonl.xz: expressions, devices, verdicts, results and both costs.
"""

from __future__ import annotations

import json
import lzma
import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent.parent / "tests" / "conformance" / "data" / "cel.jsonl.xz"
KEPT = ("compile", "estimatedCost", "storedCompile", "result", "actualCost")


def import_cases(source: Path, target: Path) -> int:
    """Copy the cases and say how many there are."""
    cases = [json.loads(line) for line in source.read_text().splitlines() if line]
    lines = [json.dumps(_without_texts(case), ensure_ascii=False, separators=(",", ":")) for case in cases]
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(lzma.compress(("\n".join(lines) + "\n").encode(), preset=9))
    return len(lines)


def _without_texts(case: dict[str, Any]) -> dict[str, Any]:
    expect = {key: case["expect"][key] for key in KEPT if key in case["expect"]}
    expect["fails"] = "evalError" in case["expect"]
    return {**{key: case[key] for key in ("id", "expression", "device")}, "expect": expect}


def main() -> None:
    """Run with the file of cases as the only argument."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(f"{import_cases(Path(sys.argv[1]), TARGET)} cases in {TARGET}")


if __name__ == "__main__":
    main()
