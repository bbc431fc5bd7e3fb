"""Prints a lock: packages with their versions, and the hashes of the files that they may be installed from.

    python -m tools.lock INDEX > requirements-dev.lock                   # what is installed here
    python -m tools.lock > requirements.lock                             # of that, what users need: for the image
    python -m tools.lock INDEX atheris==3.0.0 … > requirements-soak.lock # what is named

INDEX is the address of a package index, as `pip --index-url` has it. Wheels for the systems and versions of Python
that developers use are taken; of a package without any, the sources.
"""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from tools import dependencies

PYTHONS = range(11, 15)
"""Minor versions of Python 3."""
SYSTEMS = ("manylinux", "macosx")
PROCESSORS = ("x86_64", "aarch64", "arm64", "universal2")
FREEZE = (sys.executable, "-m", "pip", "freeze", "--all", "--exclude-editable", "--exclude", "pip")
ENTRY = re.compile(r"(\S+)==(\S+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n")
"""A package in a lock: its name, its version, its hashes."""
LINK = re.compile(r'#sha256=([0-9a-f]{64})"[^>]*>\s*([^<\s]+)\s*</a>')


class File(NamedTuple):
    """A file of a package, as an index lists it."""

    sha256: str
    name: str


def main(index: str, pins: Iterable[str]) -> None:
    """Prints the lock of these, or of everything that is installed."""
    frozen = subprocess.run(FREEZE, check=True, capture_output=True, text=True).stdout.split()
    for pin in sorted(pins or frozen, key=str.lower):
        name, _, version = pin.partition("==")
        address = f"{index.rstrip('/')}/{canonicalize_name(name)}/"
        with urllib.request.urlopen(address) as answer:  # the developer's own
            files = [File(*found) for found in LINK.findall(answer.read().decode())]
        hashes = sorted(set(_wheels(files, version)) or set(_sources(files, name, version)))
        if not hashes:
            sys.exit(f"there is no file of {pin}")
        print(" \\\n".join([pin, *(f"    --hash=sha256:{one}" for one in hashes)]))


def _wheels(files: list[File], version: str) -> Iterator[str]:
    for file in files:
        try:
            _, found, _, tags = parse_wheel_filename(file.name)
        except InvalidWheelFilename:
            continue
        if str(found) == version and any(map(_suits, tags)):
            yield file.sha256


def _suits(tag: Tag) -> bool:
    minor = tag.interpreter.removeprefix("cp3")
    current = tag.interpreter == "py3" or (
        minor.isdecimal() and (int(minor) in PYTHONS or (tag.abi == "abi3" and int(minor) <= PYTHONS[0]))
    )
    here = tag.platform == "any" or (tag.platform.startswith(SYSTEMS) and tag.platform.endswith(PROCESSORS))
    return current and here and not tag.abi.endswith("t")  # free-threaded


def _sources(files: list[File], name: str, version: str) -> Iterator[str]:
    wanted = {f"{spelled}-{version}.tar.gz" for spelled in (name, name.replace("-", "_"), canonicalize_name(name))}
    return (file.sha256 for file in files if file.name in wanted)


def for_users() -> str:
    """The part of the lock for developers that `pip install 'dray[all]'` needs."""
    wanted = dependencies.needed()
    entries = ENTRY.finditer((dependencies.ROOT / "requirements-dev.lock").read_text())
    return "".join(entry[0] for entry in entries if canonicalize_name(entry[1]) in wanted)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1], sys.argv[2:])
    else:
        print(for_users(), end="")
