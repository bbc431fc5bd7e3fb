"""What is installed for development is named with its version and the hashes of its files."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
ENTRY = re.compile(r"(\S+)==(\S+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n")


def locked(name: str) -> dict[str, Version]:
    """The packages of a lock. Every line of it belongs to one of them."""
    text = (ROOT / name).read_text()
    assert ENTRY.sub("", text) == ""
    return {canonicalize_name(found[1]): Version(found[2]) for found in ENTRY.finditer(text)}


@pytest.mark.parametrize(
    ("lock", "extras"), [("requirements-dev.lock", ["", "dev"]), ("requirements-fuzz.lock", ["fuzz"])]
)
def test_everything_that_is_asked_for_is_locked_in_a_version_that_suits(lock: str, extras: list[str]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    asked = {"": project["project"]["dependencies"] + project["build-system"]["requires"]}
    asked |= project["project"]["optional-dependencies"]
    versions = locked(lock)
    for requirement in (Requirement(text) for extra in extras for text in asked[extra]):
        if requirement.marker is None or requirement.marker.evaluate():
            found = versions.get(canonicalize_name(requirement.name))
            assert found is not None, requirement
            assert found in requirement.specifier, requirement
