"""Coverage-guided fuzzing of everything that reads bytes of strangers (`soak.targets`), with atheris.

    python -m soak.fuzz --seconds 7200 [--targets json,yaml] [--folder .soak/fuzz]

The time is shared by the targets, each in a process of its own. What leads to new lines is kept in the folder and is
where the next run begins; an input that must not be is kept there, too, and named (exit code 1). To see it again:

    python -m soak.fuzz --again json .soak/fuzz/json-findings/crash-…
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

TARGETS = ("framing", "json", "yaml", "protobuf", "patch", "cel", "grpc")
SLOWEST_INPUT = 10
MOST_MEGABYTES = 2048
LONGEST_INPUT = 4096


class Outcome(NamedTuple):
    """What became of one target."""

    target: str
    runs: int
    edges: int
    findings: list[Path]


def fuzz(target: str, seconds: int, folder: Path) -> Outcome:
    """Fuzzes a target for some seconds, in a process of its own."""
    corpus, findings = folder / target, folder / f"{target}-findings"
    corpus.mkdir(parents=True, exist_ok=True)
    findings.mkdir(exist_ok=True)
    command = [
        sys.executable, "-m", "soak.fuzz", "--one", target, "--",
        f"-max_total_time={seconds}", f"-timeout={SLOWEST_INPUT}", f"-rss_limit_mb={MOST_MEGABYTES}",
        f"-max_len={LONGEST_INPUT}", f"-artifact_prefix={findings}/", "-print_final_stats=1", str(corpus),
    ]  # fmt: skip
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    (folder / f"{target}.log").write_text(done.stdout)
    runs = re.findall(r"number_of_executed_units: (\d+)", done.stdout) or re.findall(r"#(\d+)\s", done.stdout)
    edges = re.findall(r"cov: (\d+)", done.stdout)
    if not runs:
        raise SystemExit(f"{target} could not be fuzzed:\n{done.stdout[-2000:]}")
    return Outcome(target, int(runs[-1]), int(edges[-1]) if edges else 0, sorted(findings.iterdir()))


def run_one(target: str, libfuzzer: list[str]) -> None:
    """Becomes the fuzzer of a target; does not return."""
    import atheris

    with atheris.instrument_imports(include=["dray"]):
        from soak import targets

    corpus = Path(libfuzzer[-1])
    if corpus.is_dir():
        for number, seed in enumerate(targets.SEEDS[target]):
            (corpus / f"seed-{number}").write_bytes(seed)
    atheris.Setup([sys.argv[0], *libfuzzer], targets.TARGETS[target])
    atheris.Fuzz()


def main() -> int:
    """The exit code is 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=7200)
    parser.add_argument("--targets", type=lambda text: text.split(","), default=list(TARGETS))
    parser.add_argument("--folder", type=Path, default=Path(".soak/fuzz"))
    parser.add_argument("--one", choices=TARGETS, help=argparse.SUPPRESS)
    parser.add_argument("--again", nargs=2, metavar=("TARGET", "FILE"))
    parser.add_argument("libfuzzer", nargs="*", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        run_one(given.one, given.libfuzzer)
    if given.again:
        from soak import targets

        targets.TARGETS[given.again[0]](Path(given.again[1]).read_bytes())
        return 0
    found = False
    for target in given.targets:
        outcome = fuzz(target, given.seconds // len(given.targets), given.folder)
        counts = f"{outcome.runs:12} inputs {outcome.edges:8} edges {len(outcome.findings):4} findings"
        print(f"{target:10} {counts}", flush=True)
        for path in outcome.findings:
            print(f"  {path}: python -m soak.fuzz --again {target} {path}")
        found = found or bool(outcome.findings)
    return int(found)


if __name__ == "__main__":
    sys.exit(main())
