"""Prints a lock: packages with their versions, and the hashes of the files that they may be installed from.

    python -m tools.lock > requirements-dev.lock                    # what is installed here
    python -m tools.lock atheris==3.0.0 > requirements-fuzz.lock    # what is named

pip is asked which wheel it would take on every system and version of Python that developers use; what has none for one
of them cannot be installed there. Nothing is built from sources, and nothing is installed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

SYSTEMS = (
    ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64", "manylinux_2_12_x86_64"),
    ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"),
    ("macosx_14_0_arm64", "macosx_11_0_arm64", "macosx_10_9_universal2"),
)
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
FROZEN = ("freeze", "--exclude-editable")


def main(pins: Iterable[str]) -> None:
    """Prints the lock of these, or of everything that is installed."""
    wanted = sorted(pins or _installed(), key=str.lower)
    hashes: dict[str, set[str]] = {pin: set() for pin in wanted}
    for system in SYSTEMS:
        for python in PYTHONS:
            for pin, found in _ask(wanted, system, python):
                hashes[pin].add(found)
    missing = [pin for pin, found in hashes.items() if not found]
    if missing:
        sys.exit(f"there is no wheel of {', '.join(missing)}")
    for pin, found in hashes.items():
        print(" \\\n".join([pin, *(f"    --hash=sha256:{one}" for one in sorted(found))]))


def _installed() -> list[str]:
    done = subprocess.run([*PIP, *FROZEN], check=True, capture_output=True, text=True)
    return done.stdout.split()


def _ask(pins: list[str], system: tuple[str, ...], python: str) -> Iterator[tuple[str, str]]:
    """The hash of the wheel of each package for a system; of one by one, if not all of them have one."""
    report = _report(pins, system, python)
    if report is None:
        if len(pins) > 1:
            middle = len(pins) // 2
            yield from _ask(pins[:middle], system, python)
            yield from _ask(pins[middle:], system, python)
        return
    by_name = {_name(pin): pin for pin in pins}
    for entry in json.loads(report)["install"]:
        found = entry["download_info"]["archive_info"]["hashes"]["sha256"]
        yield by_name[_name(entry["metadata"]["name"])], found


def _report(pins: list[str], system: tuple[str, ...], python: str) -> str | None:
    """What pip would install there. None if it could not."""
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory, "report.json")
        options = ["install", "--dry-run", "--quiet", "--no-deps", "--only-binary=:all:", "--ignore-installed"]
        options += [f"--report={target}", f"--target={directory}", f"--python-version={python}"]
        done = subprocess.run(
            [*PIP, *options, *(f"--platform={one}" for one in system), *pins],
            check=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return target.read_text() if done.returncode == 0 else None


def _name(requirement: str) -> str:
    return requirement.partition("==")[0].lower().replace("_", "-").replace(".", "-")


if __name__ == "__main__":
    main(sys.argv[1:])
