"""`make peers PEERS=dir`: dray's components and Kubernetes' own in all pairings, counted in `docs/conformance.md`.

The directory has kube-apiserver, kube-scheduler and kube-controller-manager, built from Kubernetes' sources, and etcd
unless that is on the path; nothing of it is part of this repository.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as Xml  # of our own pytest
from collections import Counter
from datetime import date
from pathlib import Path

from tools.e2e import HERE, PAGE, PAIRINGS

COLUMNS = "| API server | Scheduler | Controllers | Passed | Failed |\n|---|---|---|---|---|\n"
ABOUT = """\
`make peers PEERS=dir` starts each pairing of API server, scheduler and controllers as processes, with etcd below
kube-apiserver, and tries the same scenarios (`tests/peer_scenarios.py`) on each. There are no kubelets: a pod that is
bound counts as running. The directory has Kubernetes' binaries; without it dray's own three are tried alone, in
`make soak`.

"""
NAMES = {
    "dray": ("dray server", "dray scheduler", "dray controllers"),
    "kubernetes": ("kube-apiserver", "kube-scheduler", "kube-controller-manager"),
    "two dray servers on etcd": ("two dray servers on etcd", "", ""),
}


def main() -> None:
    """Runs all pairings and writes the section of the page; ends with pytest's code."""
    peers = Path(os.environ.get("PEERS", ""))
    if not (peers / "kube-apiserver").is_file():
        raise SystemExit("name the directory of Kubernetes' binaries: make peers PEERS=dir")
    with tempfile.TemporaryDirectory(prefix="dray-peers-") as directory:
        report = Path(directory) / "report.xml"
        command = [sys.executable, "-m", "pytest", "tests/peers", "-q", f"--junitxml={report}"]
        done = subprocess.run(command, cwd=HERE, check=False)
        version = subprocess.run([peers / "kube-apiserver", "--version"], capture_output=True, text=True, check=True)
        section = count(report.read_text(), version.stdout.split()[-1])
    PAGE.write_text(f"{PAGE.read_text().partition(PAIRINGS)[0].rstrip()}\n\n{section}")
    raise SystemExit(done.returncode)


def count(report: str, version: str) -> str:
    """The section of the page for a report of pytest."""
    passed: Counter[str] = Counter()
    failed: dict[str, list[str]] = {}
    for case in Xml.fromstring(report).iter("testcase"):
        test, _, parameters = case.attrib["name"].partition("[")
        if test != "test_pairing":
            continue
        words = parameters.rstrip("]").split("-")
        pairing, scenario = "-".join(words[:3]), "-".join(words[3:]).replace("_", " ")
        if case.find("failure") is not None or case.find("error") is not None:
            failed.setdefault(pairing, []).append(scenario)
        else:
            passed[pairing] += 1
    lines = [
        PAIRINGS,
        "## All pairings with Kubernetes' own components\n\n",
        ABOUT,
        f"Counted {date.today().isoformat()} with Kubernetes {version}.\n\n",
        COLUMNS,
    ]
    for pairing in dict.fromkeys([*passed, *failed]):
        names = [NAMES[who][place] for place, who in enumerate(pairing.split("-"))]
        lines.append(f"| {' | '.join(names)} | {passed[pairing]} | {len(failed.get(pairing, ()))} |\n")
    for pairing, scenarios in failed.items():
        lines.append(f"\nFailed with {pairing}: {', '.join(scenarios)}.\n")
    return "".join(lines)


if __name__ == "__main__":
    main()
