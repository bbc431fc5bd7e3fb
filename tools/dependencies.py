"""The packages that dray is installed with, directly or not, as they are installed here."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
EVERYTHING = ("node", "driver", "etcd")
"""The extras of users, which `pip install 'dray[all]'` brings."""


def direct(extras: Iterable[str] = EVERYTHING) -> list[str]:
    """The names of what pyproject.toml asks for, for this system and this version of Python."""
    return sorted({canonicalize_name(one.name) for one in _asked(extras) if applies(one)})


def needed(extras: Iterable[str] = EVERYTHING) -> dict[str, metadata.Distribution]:
    """What `pip install dray[extras]` brings, by name; what is for other systems or versions of Python is left out."""
    waiting = direct(extras)
    found: dict[str, metadata.Distribution] = {}
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = metadata.distribution(name)
            further = (Requirement(text) for text in found[name].requires or ())
            waiting += [canonicalize_name(one.name) for one in further if applies(one)]
    return dict(sorted(found.items()))


def _asked(extras: Iterable[str]) -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    texts = [*project["dependencies"], *(text for extra in extras for text in project["optional-dependencies"][extra])]
    return [Requirement(text) for text in texts]


def applies(requirement: Requirement) -> bool:
    """Whether a requirement is for this system and this version of Python, and of no extra."""
    return requirement.marker is None or requirement.marker.evaluate({"extra": ""})
