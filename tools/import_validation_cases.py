"""Bring the recorded validation cases into the repository, without the texts of upstream's messages.

    python tools/import_validation_cases.py ../shared/conformance/validation.open.jsonl

writes tests/conformance/data/validation.jsonl.xz: codes, reasons, fields, returned objects and the number of warnings.
"""

from __future__ import annotations

import json
import lzma
import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent.parent / "tests" / "conformance" / "data" / "validation.jsonl.xz"
TEXTS = ("message", "text")


def import_cases(source: Path, target: Path) -> int:
    """Copy the cases and say how many there are."""
    cases = [json.loads(line) for line in source.read_text().splitlines() if line]
    lines = [json.dumps(_without_texts(case), ensure_ascii=False, separators=(",", ":")) for case in cases]
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(lzma.compress(("\n".join(lines) + "\n").encode(), preset=9))
    return len(lines)


def _without_texts(case: dict[str, Any]) -> dict[str, Any]:
    return {**case, "steps": [{**step, "expect": _expectation(step["expect"])} for step in case["steps"]]}


def _expectation(expect: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in expect.items() if key not in TEXTS}
    if "causes" in kept:
        kept["causes"] = [{"reason": cause["reason"], "field": cause.get("field", "")} for cause in kept["causes"]]
    if "warnings" in kept:
        kept["warnings"] = len(kept["warnings"])
    return kept


def main() -> None:
    """Run with the file of cases as the only argument."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(f"{import_cases(Path(sys.argv[1]), TARGET)} cases in {TARGET}")


if __name__ == "__main__":
    main()
