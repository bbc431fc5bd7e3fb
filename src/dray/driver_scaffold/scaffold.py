"""From the name of a driver to the files of its project."""

from __future__ import annotations

import keyword
import sys
from importlib import resources
from importlib.metadata import packages_distributions
from importlib.resources.abc import Traversable
from string import Template
from typing import Final

import msgspec
import yaml

from dray.api.names import validate_dns1123_subdomain, validate_driver_name

SUFFIX: Final = ".template"
"""Of the files of the template, so that nobody takes them for programs or manifests of dray's own."""


class ScaffoldError(ValueError):
    """A name that no driver can have; the message says why, and what one looks like."""


class Names(msgspec.Struct, frozen=True):
    """What a driver, and everything around it, is called."""

    driver: str
    """`fans.example.com`"""
    module: str
    """`fans`, also the name of its objects in a cluster, with dashes"""
    class_: str
    """`Fans`"""

    @classmethod
    def of(cls, driver: str) -> Names:
        """The names that follow from that of a driver. Raises ScaffoldError."""
        problems = [*validate_driver_name(driver)] or [*validate_dns1123_subdomain(driver)]
        if problems:
            raise ScaffoldError(
                f"{driver!r} is no name for a driver: {'; '.join(problems)}. Try one like fans.example.com."
            )
        first, dot, _ = driver.partition(".")
        if not dot:
            raise ScaffoldError(
                f"{driver!r} is no name for a driver: it must end in a domain of yours, such as {driver}.example.com."
            )
        module = first.replace("-", "_")
        if not module[0].isalpha():
            module = f"driver_{module}"
        if _is_taken(module):
            module = f"{module}_driver"
        return cls(driver, module, _class_of(module))

    @property
    def project(self) -> str:
        """What the project and its objects are called: `fans`."""
        return self.module.replace("_", "-")


def _class_of(module: str) -> str:
    return "".join(part.capitalize() for part in module.split("_"))


def _is_taken(module: str) -> bool:
    """Whether the name means something else already: to Python, to what is installed, to tests or in a manifest."""
    return (
        any(map(keyword.iskeyword, (module, _class_of(module))))
        or module in sys.stdlib_module_names
        or module in ("conftest", "dray", "pytest", "test", "tests")
        or module in packages_distributions()
        or yaml.safe_load(module) != module
    )


def files_of(names: Names) -> dict[str, str]:
    """The files of a driver's project, by their path in it."""
    values = {
        "driver": names.driver,
        "module": names.module,
        "class_name": names.class_,
        "project": names.project,
        "variable": names.module.upper(),
    }
    root = resources.files("dray.driver_scaffold") / "template"
    return {
        Template(path).substitute(values): Template(file.read_text()).substitute(values)
        for path, file in sorted(_walk(root, ""))
    }


def _walk(folder: Traversable, prefix: str) -> list[tuple[str, Traversable]]:
    found: list[tuple[str, Traversable]] = []
    for entry in folder.iterdir():
        if entry.is_dir():
            found += _walk(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(SUFFIX):
            found.append((prefix + entry.name.removesuffix(SUFFIX), entry))
    return found
