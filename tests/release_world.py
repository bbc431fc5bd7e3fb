"""A wheel of this checkout, an environment with it and nothing but what it asks for, and what the locks name."""

from __future__ import annotations

import subprocess
import sys
import venv
from collections.abc import Iterable
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import Version
from tools import dependencies
from tools.lock import ENTRY

ROOT = Path(__file__).parent.parent


def build(target: str, directory: Path) -> Path:
    """The wheel ("wheel") or the source archive ("sdist"), made as `python -m build` makes them."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(directory)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return next(directory.iterdir())


def link_packages(extras: Iterable[str], folder: Path) -> None:
    """Links the packages that dray needs with these extras from the running environment into a folder."""
    for distribution in dependencies.needed(extras).values():
        parts = {file.parts[0] for file in distribution.files or () if file.parts[0] != ".."}
        for part in parts:
            link = folder / part
            if not link.exists():
                link.symlink_to(str(distribution.locate_file(part)))


class Installed:
    """A clean environment with the wheel and the packages that it needs, without any extra."""

    def __init__(self, directory: Path, wheel: Path) -> None:
        self.directory = directory
        venv.create(directory, symlinks=True)
        link_packages((), next(directory.glob("lib/python*/site-packages")))
        pip = (sys.executable, "-m", "pip", "--python", self.program("python"), "install", "--quiet", "--no-index")
        subprocess.run([*pip, "--no-compile", "--no-deps", wheel], check=True)

    def program(self, name: str) -> Path:
        """A program of the environment."""
        return self.directory / "bin" / name

    def run(self, program: str, *words: object, beside: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Runs a program far from the checkout, with nothing of the outer environment; more packages may be beside."""
        command = [str(word) for word in (self.program(program), *words)]
        environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.directory), "COLUMNS": "120"}
        if beside is not None:
            environment["PYTHONPATH"] = str(beside)
        return subprocess.run(
            command, cwd=self.directory, env=environment, capture_output=True, text=True, check=False, timeout=120
        )


def locked(name: str) -> dict[str, Version]:
    """The packages of a lock. Every line of it belongs to one of them."""
    text = (ROOT / name).read_text()
    assert ENTRY.sub("", text) == ""
    return {canonicalize_name(found[1]): Version(found[2]) for found in ENTRY.finditer(text)}
