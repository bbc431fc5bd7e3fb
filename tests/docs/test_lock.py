"""What is installed for development is named with its version and the hashes of its files."""

from __future__ import annotations

import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tools import lock as locks

from release_world import ROOT, locked


@pytest.mark.parametrize(
    ("lock", "extras"),
    [("requirements-dev.lock", ["", "dev", "node", "driver", "etcd"]), ("requirements-soak.lock", ["soak"])],
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


def test_the_lock_for_users_is_their_part_of_the_lock_for_developers() -> None:
    assert (ROOT / "requirements.lock").read_text() == locks.for_users(), "run: make generate"
    assert "pytest" not in locked("requirements.lock")
