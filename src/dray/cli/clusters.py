"""The clusters on this machine: where `dray up` keeps them, which of them run, and the way into one."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import msgspec
import typer

from dray.cli import output
from dray.files import home

USUAL: Final = "~/.local/share/dray"
"""What help calls `place`."""
DEFAULT: Final = "default"
LOG_FILE: Final = "dray.log"
ELSEWHERE: Final = ".elsewhere"
"""Where it is noted which clusters run on directories of their own."""
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")

Directory: TypeAlias = Annotated[
    Path | None, typer.Option("--dir", help="State directory, instead of the one of NAME; dray up makes it if absent.")
]


def name_argument(offers: Callable[[str], list[str]]) -> Any:
    """The cluster that is meant, and what the shell offers for it."""
    text = f"The cluster, by the name of its directory in {USUAL}, or in $XDG_DATA_HOME/dray if that is set."
    return typer.Argument(metavar="NAME", help=text, autocompletion=offers)


def place() -> Path:
    """Where clusters are that were started by name."""
    return home.data() / "dray"


def default_directory() -> Path:
    """The state directory of a bare `dray up`."""
    return place() / DEFAULT


class LocalCluster(msgspec.Struct, frozen=True, kw_only=True):
    """A state directory, and the process that uses it now; 0 if none does."""

    directory: Path
    pid: int = 0

    @property
    def name(self) -> str:
        """What people call it."""
        return self.directory.name

    @property
    def label(self) -> str:
        """The name, or the whole directory where only that says which cluster is meant."""
        return self.name if self.directory.parent == place() else output.short_path(self.directory)

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
    return place() / name


def look(directory: Path) -> LocalCluster:
    """A cluster as it is now."""
    from dray.store.lock import find_holder

    return LocalCluster(directory=directory, pid=find_holder(directory))


def find_all() -> list[LocalCluster]:
    """Every cluster that was started by name, in the order of names, and those elsewhere that run now."""
    usual = place()
    named = [look(path.parent) for path in sorted(usual.glob("*/kubeconfig"))] if usual.is_dir() else []
    return [*named, *_running_elsewhere(usual)]


@contextlib.contextmanager
def remembered(directory: Path) -> Iterator[None]:
    """While a cluster runs on a directory that is not in the usual place, `find_all` knows of it.

    A file per directory says which, so that those who start at the same time do not disturb each other. Where there is
    no home to write to, nobody is told.
    """
    usual, directory = place(), directory.absolute()
    if directory.parent == usual or not usual.is_absolute():
        yield
        return
    note = usual / ELSEWHERE / hashlib.sha256(os.fsencode(directory)).hexdigest()[:16]
    with contextlib.suppress(OSError):
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_bytes(os.fsencode(directory))
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            note.unlink()


def _running_elsewhere(usual: Path) -> list[LocalCluster]:
    """Those whose notes are true; notes of processes that were killed go."""
    found = []
    for note in sorted((usual / ELSEWHERE).glob("*")):
        with contextlib.suppress(OSError):
            cluster = look(Path(os.fsdecode(note.read_bytes())))
            if cluster.pid:
                found.append(cluster)
            else:
                note.unlink()
    return sorted(found, key=lambda cluster: cluster.directory)


def find_default() -> LocalCluster | None:
    """The cluster that a bare `dray up` runs, if it runs."""
    found = look(default_directory())
    return found if found.pid and found.kubeconfig.exists() else None
