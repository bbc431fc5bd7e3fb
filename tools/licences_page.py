"""Writes `docs/licences.md`: what dray is installed with, and under which licences.

    python -m tools.licences_page

A test checks that nothing is missing there, and that every licence is one that asks for nothing but to be named.
"""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from tools import dependencies

PAGE = Path(__file__).parent.parent / "docs" / "licences.md"
INTRODUCTION = """\
# Licences

What `pip install 'dray[all]'` brings along, directly or not, and under which licence, as each project says it. All of
them are permissive. Made by `make generate` from the installed packages; do not edit. The versions that were tested are
in `requirements-dev.lock`.

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
    """What dray needs to run, with all its extras, by name."""
    found = dependencies.needed()
    return [Package(name, licence_of(one.metadata)) for name, one in found.items()]


def licence_of(found: metadata.PackageMetadata) -> str:
    """The licence of a package, in its own words."""
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
