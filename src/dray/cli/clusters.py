"""The clusters on this machine: where `dray up` keeps them, which of them run, and the way into one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import msgspec
import typer

from dray.cli import output
from dray.files import home

HOME: Final = Path("~/.local/share/dray")
DEFAULT: Final = "default"
LOG_FILE: Final = "dray.log"
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")

Name: TypeAlias = Annotated[
    str, typer.Argument(metavar="NAME", help="The cluster, by the name of its directory in ~/.local/share/dray.")
]
Directory: TypeAlias = Annotated[
    Path | None, typer.Option("--dir", help="State directory, instead of the one of NAME; made if absent.")
]


class LocalCluster(msgspec.Struct, frozen=True, kw_only=True):
    """A state directory, and the process that uses it now; 0 if none does."""

    directory: Path
    pid: int = 0

    @property
    def name(self) -> str:
        """What people call it."""
        return self.directory.name

    @property
    def context(self) -> str:
        """The name of its context where kubeconfigs are merged."""
        return f"dray-{self.name}"

    @property
    def kubeconfig(self) -> Path:
        """The admin's way in."""
        return self.directory / "kubeconfig"

    def url(self) -> str:
        """Where it listens, or last did; empty if that is not known."""
        from dray.client.kubeconfig import KubeconfigError, load_kubeconfig

        try:
            return load_kubeconfig([self.kubeconfig]).server
        except KubeconfigError:
            return ""


def directory_of(name: str, directory: Path | None) -> Path:
    """The state directory that is meant. Ends with exit code 2 for a name that is none, or if both are given."""
    if directory is not None:
        if name != DEFAULT:
            output.fail(f"both NAME ({name}) and --dir ({directory}) are given: give one of them.")
        return home.expand(directory)
    if not _NAME.fullmatch(name):
        output.fail(f"{name!r} is no name for a cluster: use lower-case letters, digits, - and ., at most 63.")
    return home.expand(HOME) / name


def look(directory: Path) -> LocalCluster:
    """A cluster as it is now."""
    from dray.store.lock import find_holder

    return LocalCluster(directory=directory, pid=find_holder(directory))


def find_all() -> list[LocalCluster]:
    """Every cluster that was started by name, in the order of names."""
    place = home.expand(HOME)
    return [look(path.parent) for path in sorted(place.glob("*/kubeconfig"))] if place.is_dir() else []


def find_default() -> LocalCluster | None:
    """The cluster that a bare `dray up` runs, if it runs."""
    found = look(home.expand(HOME) / DEFAULT)
    return found if found.pid and found.kubeconfig.exists() else None
