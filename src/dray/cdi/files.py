"""Spec files: written whole or not at all, so that a runtime never reads half of one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from dray.api import codec
from dray.cdi.errors import CdiError
from dray.cdi.rules import validate
from dray.cdi.spec import Spec

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
    path = _path(directory, name)
    data = codec.encode(spec)
    try:
        if path.exists() and path.read_bytes() == data:
            return path
        directory.mkdir(parents=True, exist_ok=True, mode=0o755)
        _replace(path, data)
    except OSError as error:
        raise CdiError(f"cannot write {path}: {error.strerror or error}") from None
    return path


def remove_spec(directory: Path, name: str) -> None:
    """Removes what `write_spec` wrote; nothing happens if it is not there. Raises CdiError."""
    path = _path(directory, name)
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise CdiError(f"cannot remove {path}: {error.strerror or error}") from None


def _path(directory: Path, name: str) -> Path:
    if not name or "/" in name or name.startswith("."):
        raise CdiError(f'"{name}" is no name for a CDI spec file')
    return directory / f"{name}.json"


def _replace(path: Path, data: bytes) -> None:
    # Readers look at .json and .yaml only, so they never see the file before it has its name.
    number, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem[:100]}-", suffix=".tmp")
    try:
        with os.fdopen(number, "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), SPEC_MODE)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
