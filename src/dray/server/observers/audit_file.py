"""The file that audit events are appended to, and those that it was before: renamed when it is large, removed when old.

    audit.log ── larger than max_bytes ──▶ audit-2026-11-17T01-02-03.000000.log ── too many, or too old ──▶ removed

Used by one thread at a time, which is not that of the event loop.
"""

from __future__ import annotations

import contextlib
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import time

import msgspec

DAY = 86400.0


class Rotation(msgspec.Struct, frozen=True):
    """When a file is renamed, and which of the renamed ones are kept. 0: no limit."""

    max_bytes: int = 0
    max_backups: int = 0
    max_age_days: int = 0


class AuditFile:
    """The file, open for appending."""

    def __init__(self, path: Path, rotation: Rotation) -> None:
        """Opens it, made (0600) if absent. Raises OSError."""
        self._path = path
        self._rotation = rotation
        self._file = self._open()
        self._size = os.fstat(self._file).st_size

    def append(self, lines: list[bytes]) -> None:
        """Writes lines, each whole in one file. Raises OSError."""
        held: list[bytes] = []
        size, limit = 0, self._rotation.max_bytes
        for line in lines:
            if limit and self._size + size > 0 and self._size + size + len(line) > limit:
                self._write(b"".join(held))
                held, size = [], 0
                self._rotate()
            held.append(line)
            size += len(line)
        self._write(b"".join(held))

    def close(self) -> None:
        """Lets go of the file. Idempotent."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _open(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            written = os.write(self._file, view)
            self._size += written
            view = view[written:]

    def _rotate(self) -> None:
        """The file becomes one of the old ones; if that cannot be, it grows on."""
        if not self._size:
            return
        with contextlib.suppress(OSError):
            os.rename(self._path, self._old_name(datetime.now(UTC)))
            new = self._open()
            os.close(self._file)
            self._file, self._size = new, 0
            self._remove_old()

    def _old_name(self, moment: datetime) -> Path:
        """A name that nobody has, later ones after earlier ones."""
        while True:
            when = moment.strftime("%Y-%m-%dT%H-%M-%S.%f")
            name = self._path.with_name(f"{self._path.stem}-{when}{self._path.suffix}")
            if not name.exists():
                return name
            moment += timedelta(microseconds=1)

    def _remove_old(self) -> None:
        keep, age = self._rotation.max_backups, self._rotation.max_age_days
        backups = sorted(self._path.parent.glob(f"{self._path.stem}-*T*{self._path.suffix}"), reverse=True)
        oldest = time() - age * DAY
        for number, backup in enumerate(backups):
            with contextlib.suppress(OSError):
                if (keep and number >= keep) or (age and backup.stat().st_mtime < oldest):
                    backup.unlink()
