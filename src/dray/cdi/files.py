"""Spec files: written whole or not at all, so that a runtime never reads half of one.

Readers look at .json and .yaml only, so they never see a file before it has its name.
"""

from __future__ import annotations

from pathlib import Path

from dray.api import codec
from dray.cdi.errors import CdiError
from dray.cdi.rules import validate
from dray.cdi.spec import MAX_SPEC_BYTES, Spec
from dray.files import Directory

SPEC_MODE = 0o644
SUFFIXES = (".json", ".yaml")


def write_spec(directory: Path, name: str, spec: Spec) -> Path:
    """Writes a spec as `<name>.json`, over what was there; leaves nothing behind if it fails. Raises CdiError.

    A file that is already there with the same bytes is left alone. Nothing is flushed to the disk: CDI directories are
    for this boot of the machine, and drivers prepare again after the next.
    """
    problems = validate(spec)
    if problems:
        raise CdiError(f"{name}: {'; '.join(map(str, problems))}")
    file = _file_name(name)
    data = codec.encode(spec)
    try:
        with Directory.open(directory, create=0o755) as opened:
            if _content(opened, file) != data:
                opened.replace(file, data, SPEC_MODE)
    except OSError as error:
        raise CdiError(f"cannot write {directory / file}: {error.strerror or error}") from None
    return directory / file


def remove_spec(directory: Path, name: str) -> None:
    """Removes what `write_spec` wrote; nothing happens if it is not there. Raises CdiError."""
    file = _file_name(name)
    try:
        with Directory.open(directory) as opened:
            opened.remove(file)
    except FileNotFoundError:
        return
    except OSError as error:
        raise CdiError(f"cannot remove {directory / file}: {error.strerror or error}") from None


def _file_name(name: str) -> str:
    if not name or "/" in name or name.startswith("."):
        raise CdiError(f'"{name}" is no name for a CDI spec file')
    return f"{name}.json"


def _content(directory: Directory, name: str) -> bytes | None:
    """What is there now; None if that is nothing, or nothing that could stay."""
    try:
        return directory.read(name, MAX_SPEC_BYTES)
    except OSError:
        return None
