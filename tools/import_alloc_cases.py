"""Bring the recorded allocation cases into the repository, without the texts of upstream's messages.

    python tools/import_alloc_cases.py ../shared/conformance/alloc.open.jsonl

writes tests/conformance/data/alloc.jsonl.xz: objects, what is to be allocated, the outcome and the allocations.
"""

from __future__ import annotations

import json
import lzma
import sys
from pathlib import Path

TARGET = Path(__file__).parent.parent / "tests" / "conformance" / "data" / "alloc.jsonl.xz"


def import_cases(source: Path, target: Path) -> int:
    """Copy the cases and say how many there are."""
    cases = [json.loads(line) for line in source.read_text().splitlines() if line]
    for case in cases:
        case["expect"].pop("error", None)
    lines = [json.dumps(case, ensure_ascii=False, separators=(",", ":")) for case in cases]
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(lzma.compress(("\n".join(lines) + "\n").encode(), preset=9))
    return len(lines)


def main() -> None:
    """Run with the file of cases as the only argument."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(f"{import_cases(Path(sys.argv[1]), TARGET)} cases in {TARGET}")


if __name__ == "__main__":
    main()
