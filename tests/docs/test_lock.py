"""What is installed for development is named with its version and the hashes of its files."""

from __future__ import annotations

import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from release_world import ROOT, locked


@pytest.mark.parametrize(
    ("lock", "extras"),
    [("requirements-dev.lock", ["", "dev", "node", "driver", "etcd"]), ("requirements-fuzz.lock", ["fuzz"])],
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
