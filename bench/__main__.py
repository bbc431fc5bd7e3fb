"""`make bench`: runs every benchmark of this package, prints the figures, and writes `bench/results.json`.

Machines are noisy: read the ratios inside one run rather than the absolute times, and compare two versions with
`python -m bench compare OLD NEW`, where both are paths of checkouts.
"""

from __future__ import annotations

import json
import platform
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def main() -> None:
    """Runs the benchmarks named on the command line, or all; or compares two checkouts."""
    if sys.argv[1:2] == ["compare"]:
        if len(sys.argv) != 4:
            raise SystemExit("usage: python -m bench compare OLD NEW, both paths of checkouts")
        print(import_module("bench._compare").compare(Path(sys.argv[2]), Path(sys.argv[3])))
        return
    names = sys.argv[1:] or sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith("_"))
    results_file = HERE / "results.json"
    results: dict[str, Any] = json.loads(results_file.read_text()) if results_file.exists() else {}
    for name in names:
        print(f"{name} …", flush=True)
        results[name] = import_module(f"bench.{name}").run()
        print(json.dumps(results[name], indent=2), flush=True)
    results["machine"] = {"python": platform.python_version(), "processor": platform.machine()}
    results_file.write_text(json.dumps(results, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
