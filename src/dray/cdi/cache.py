"""All CDI devices of a node: the specs in its directories, read as they change, and what a list of ids means.

A directory wins over those before it. Two files of one directory that define the same device make it unusable, because
nothing says which one is meant; other devices of both files stay usable. A file that cannot be read takes away only its
own devices, and so does one that others than root and the user of this process could have written: specs name programs
that run with the agent's rights. All of that is in `problems`, by file or directory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from dray.cdi.errors import CdiError
from dray.cdi.files import SUFFIXES
from dray.cdi.names import DeviceId, qualify
from dray.cdi.spec import MAX_SPEC_BYTES, CdiDevice, ContainerEdits, Spec, parse
from dray.files import Directory

DIRECTORIES: Final = (Path("/etc/cdi"), Path("/var/run/cdi"))
"""Where runtimes look if they are not told otherwise."""


class _File(NamedTuple):
    """A file as it was read: `stamp` changes whenever its content may have."""

    stamp: tuple[int, int, int]
    spec: Spec | None
    problem: str


class _Entry(NamedTuple):
    """Where a device comes from."""

    rank: int
    path: Path
    spec: Spec
    device: CdiDevice


class Cache:
    """The specs of some directories. Every question looks at the directories; only changed files are read again."""

    def __init__(self, directories: Iterable[Path] = DIRECTORIES) -> None:
        """The last directory has the last word."""
        self.directories = tuple(directories)
        self.problems: dict[Path, str] = {}
        self._files: dict[Path, _File] = {}
        self._devices: dict[str, _Entry] = {}
        self._ambiguous: dict[str, tuple[Path, Path]] = {}

    def edits(self, ids: Iterable[str]) -> ContainerEdits:
        """What the devices change in a container, together, in order. Raises CdiError if any is not to be had.

        The edits that a spec has for all of its devices come once, before those of its first device.
        """
        self.refresh()
        parts: list[ContainerEdits] = []
        used: set[Path] = set()
        for text in ids:
            entry = self._find(text)
            if entry.path not in used:
                parts.append(entry.spec.container_edits)
                used.add(entry.path)
            parts.append(entry.device.container_edits)
        return ContainerEdits.merge(parts)

    def devices(self) -> tuple[str, ...]:
        """The qualified ids of all usable devices, sorted."""
        self.refresh()
        return tuple(sorted(self._devices))

    def refresh(self) -> None:
        """Reads what has changed in the directories. A directory that is missing is an empty one."""
        current: dict[Path, _File] = {}
        ranks: dict[Path, int] = {}
        for rank, directory in enumerate(self.directories):
            for path, file in self._read_directory(directory):
                current[path], ranks[path] = file, rank
        if current != self._files:
            self._files = current
            self._index(ranks)

    def _find(self, text: str) -> _Entry:
        DeviceId.parse(text)
        entry = self._devices.get(text)
        if entry is not None:
            return entry
        if text in self._ambiguous:
            first, second = self._ambiguous[text]
            raise CdiError(f'CDI device "{text}" is defined twice, in {first} and {second}: remove one of them')
        looked = ", ".join(map(str, self.directories))
        broken = "".join(f"; {problem}" for _, problem in sorted(self.problems.items())[:1])
        raise CdiError(f'CDI device "{text}" is not defined in {looked}{broken}')

    def _read_directory(self, path: Path) -> Iterator[tuple[Path, _File]]:
        try:
            with Directory.open(path) as directory:
                for name in directory.names():
                    if name.endswith(SUFFIXES):
                        file = self._read(directory, name)
                        if file is not None:
                            yield path / name, file
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            yield path, _File((0, 0, 0), None, f"{path}: {error.strerror}")

    def _read(self, directory: Directory, name: str) -> _File | None:
        """A file, from memory if it has not changed; None if it has gone."""
        path = directory.path / name
        stamp = (0, 0, 0)
        try:
            status = directory.status(name)
            if status is None:
                return None
            stamp = (status.st_ino, status.st_ctime_ns, status.st_size)
            known = self._files.get(path)
            if known is not None and known.stamp == stamp:
                return known
            return _File(stamp, parse(directory.read(name, MAX_SPEC_BYTES + 1), str(path)), "")
        except FileNotFoundError:
            return None
        except OSError as error:
            return _File(stamp, None, f"{path}: {error.strerror}")
        except CdiError as error:
            return _File(stamp, None, str(error))

    def _index(self, ranks: dict[Path, int]) -> None:
        self.problems = {path: file.problem for path, file in self._files.items() if file.problem}
        self._devices = {}
        self._ambiguous = {}
        for path, file in self._files.items():
            if file.spec is None:
                continue
            for device in file.spec.devices:
                self._add(qualify(file.spec.kind, device.name), _Entry(ranks[path], path, file.spec, device))
        for text, (first, second) in self._ambiguous.items():
            self._devices.pop(text, None)
            self.problems[second] = f"{second}: {text} is also defined in {first}"

    def _add(self, text: str, entry: _Entry) -> None:
        # Directories come in order of rank, so an entry is never weaker than the one before it.
        other = self._devices.get(text)
        if other is not None and other.rank == entry.rank:
            self._ambiguous.setdefault(text, (other.path, entry.path))
            return
        self._ambiguous.pop(text, None)
        self._devices[text] = entry
