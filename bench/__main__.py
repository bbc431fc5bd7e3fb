"""`make bench`: runs every benchmark of this package, prints the figures, and writes `bench/results.json`.

Machines are noisy: read the ratios inside one run rather than the absolute times, and compare two versions with
`python -m bench compare OLD NEW`, where both are paths of checkouts.
"""

from __future__ import annotations

import ast
import json
import platform
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
COMPARING = "python -m bench compare OLD NEW"
USAGE = f"""\
usage: python -m bench [NAME …]     runs these benchmarks, or all of them, and writes bench/results.json
       {COMPARING}     CPU time in two checkouts, and which differences are real"""


def main(arguments: Sequence[str]) -> None:
    """Runs the benchmarks that are named, or all; or compares two checkouts."""
    there = benchmarks()
    match arguments:
        case ["-h" | "--help", *_]:
            print(USAGE, "", *(f"  {name:<18}{about}" for name, about in there.items()), sep="\n")
        case ["compare", old, new]:
            print(import_module("bench._compare").compare(Path(old), Path(new)))
        case ["compare", *_]:
            raise SystemExit(f"usage: {COMPARING}, both paths of checkouts")
        case names:
            if unknown := [name for name in names if name not in there]:
                raise SystemExit(f"there is no benchmark {unknown[0]!r}; there are {', '.join(there)}")
            _run(names or list(there))


def benchmarks() -> dict[str, str]:
    """What can be measured, and what its module says of itself in a line."""
    found = {path.stem: path for path in sorted(HERE.glob("*.py")) if not path.stem.startswith("_")}
    texts = {name: ast.get_docstring(ast.parse(path.read_text())) or "" for name, path in found.items()}
    return {name: text.partition("\n")[0] for name, text in texts.items()}


def _run(names: Sequence[str]) -> None:
    results_file = HERE / "results.json"
    results: dict[str, Any] = json.loads(results_file.read_text()) if results_file.exists() else {}
    for name in names:
        print(f"{name} …", flush=True)
        results[name] = import_module(f"bench.{name}").run()
        print(json.dumps(results[name], indent=2), flush=True)
    results["machine"] = {"python": platform.python_version(), "processor": platform.machine()}
    results_file.write_text(json.dumps(results, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
