"""The state directory: private files that are either written whole or not at all.

The directory belongs to the user of this process and nobody else can enter it, otherwise keys could be swapped, and
what is in it looked through. Files are 0600.
"""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from dray.files import is_trusted
from dray.files.directory import OTHERS_WRITE

MAX_FILE_BYTES = 1024 * 1024
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_OURS = ("data.mdb", "pki")
"""What tells a state directory from one that somebody has for something else, too."""


class StateDirectoryError(Exception):
    """The directory or a file in it cannot be used. The message names it and says what to do."""


class StateDirectory:
    """A directory that only its owner can enter. Opening it creates it if need be."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Create (0700) or check the directory. Raises StateDirectoryError."""
        self.path = Path(path)
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._refuse_if_shared()
            for path in (*self.path.iterdir(), *self.path.glob("pki/*")):
                _check_owner(path, path.lstat())
        except OSError as error:
            raise StateDirectoryError(f"cannot use {self.path} as state directory: {_reason(error)}") from error

    def _refuse_if_shared(self) -> None:
        found = self.path.stat()
        if found.st_uid != os.geteuid():
            raise StateDirectoryError(
                f"{self.path} belongs to user {found.st_uid}, who could replace the keys in it, and this is user "
                f"{os.geteuid()}. Give another directory, or run: chown {os.geteuid()} {self.path}"
            )
        if not found.st_mode & _OTHERS:
            return
        # An empty directory is one that was made for us; one with content may be somebody's home or /tmp.
        is_ours = any((self.path / name).exists() for name in _OURS) or not any(self.path.iterdir())
        can = "written" if found.st_mode & OTHERS_WRITE else "read"
        if not is_ours or (can == "written" and any(self.path.iterdir())):
            raise StateDirectoryError(
                f"{self.path} can be {can} by other users (mode {stat.S_IMODE(found.st_mode):04o}), and it will hold "
                f"keys. Give another directory, or run: chmod 700 {self.path}"
            )
        self.path.chmod(0o700)

    def file(self, name: str) -> Path:
        """Where a file of this name is, or would be."""
        return self.path / name

    def read(self, name: str) -> bytes | None:
        """A file's content, None if there is none. A file that others could read is closed to them first.

        What belongs to somebody else is refused: it may have been put there while the directory was open to others.
        """
        path = self.file(name)
        try:
            with open(path, "rb", opener=_open_at_once) as file:
                found = os.fstat(file.fileno())
                _check_owner(path.parent, path.parent.stat())
                _check_owner(path, found)
                if not stat.S_ISREG(found.st_mode):
                    raise StateDirectoryError(f"{path} is no file of this server. Look at it, and remove it.")
                if stat.S_IMODE(found.st_mode) & 0o077:
                    os.fchmod(file.fileno(), 0o600)
                data = file.read(MAX_FILE_BYTES + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StateDirectoryError(f"cannot read {path}: {_reason(error)}") from error
        if len(data) > MAX_FILE_BYTES:
            raise StateDirectoryError(f"{path} is larger than {MAX_FILE_BYTES} bytes; it is not a file of this server")
        return data

    def write(self, name: str, data: bytes) -> None:
        """Replace a file by `data`, atomically and durably. Nothing is written if the content is already this."""
        path = self.file(name)
        if self.read(name) == data:
            return
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _replace(path, data)
        except OSError as error:
            raise StateDirectoryError(f"cannot write {path}: {_reason(error)}") from error


def _open_at_once(path: str, flags: int) -> int:
    """A pipe would be waited for."""
    return os.open(path, flags | os.O_NONBLOCK)


def _check_owner(path: Path, found: os.stat_result) -> None:
    """Refuses what somebody else may have put there: a file, or a link to one that says what everybody may know."""
    if not is_trusted(found.st_uid):
        raise StateDirectoryError(
            f"{path} belongs to user {found.st_uid}, who may have put it there. Look at it, and remove it or "
            f"run: chown -h {os.geteuid()} {path}"
        )


def _replace(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(file, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_directory(path.parent)


def _sync_directory(path: Path) -> None:
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _reason(error: OSError) -> str:
    if isinstance(error, FileExistsError | NotADirectoryError):
        return "it is not a directory. Give another one."
    return f"{(error.strerror or str(error)).lower()}."
