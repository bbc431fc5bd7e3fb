"""Writes `docs/licences.md`: what dray is installed with, and under which licences.

    python -m tools.licences_page

A test checks that nothing is missing there, and that every licence is one that asks for nothing but to be named.
"""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "licences.md"
INTRODUCTION = """\
# Licences

What `pip install dray` brings along, directly or not, and under which licence, as each project says it. All of them
are permissive. Made by `make generate` from the installed packages; do not edit. The versions that were tested are in
`requirements-dev.lock`.

| Package | Licence |
|---|---|
"""
PERMISSIVE = frozenset({"Apache", "BSD", "MIT", "MIT-0", "ISC", "PSF", "Python Software Foundation", "OLDAP"})
"""How the names of licences begin that may be used."""


class Package(NamedTuple):
    """An installed package and its licence."""

    name: str
    licence: str

    @property
    def is_permissive(self) -> bool:
        """Whether one may do with it what dray's users do with dray; of a choice or a sum, all parts must permit it."""
        parts = re.split(r" AND | OR |, ", self.licence)
        return all(part.removeprefix("3-Clause ").startswith(tuple(PERMISSIVE)) for part in parts)


def packages() -> list[Package]:
    """What dray needs to run, as far as it is installed here, by name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found: dict[str, Package] = {}
    waiting = [_name(requirement) for requirement in project["dependencies"]]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # for another system, or another version of Python
        found[name] = Package(name, _licence(distribution.metadata))
        waiting += [_name(each) for each in distribution.requires or () if "extra ==" not in each]
    return [found[name] for name in sorted(found)]


def _name(requirement: str) -> str:
    match = re.match(r"[\w.-]+", requirement)
    assert match is not None, requirement
    return re.sub(r"[-_.]+", "-", match[0]).lower()


def _licence(found: metadata.PackageMetadata) -> str:
    if "License-Expression" in found:
        return str(found["License-Expression"])
    listed = [each.rpartition(" :: ")[2] for each in found.get_all("Classifier") or () if each.startswith("License ::")]
    return ", ".join(listed) or str(found["License"] or "").partition("\n")[0]


def main() -> None:
    """Writes the page."""
    rows = "".join(f"| {package.name} | {package.licence} |\n" for package in packages())
    PAGE.write_text(INTRODUCTION + rows)


if __name__ == "__main__":
    main()
