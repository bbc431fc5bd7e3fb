"""The state directory: made private, and held by one process at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

from dray.store.errors import Locked, Unusable

LOCK_FILE = "lock"


class DirectoryLock:
    """Holds a directory until `release`, or until the process ends in whatever way.

    The lock is the kernel's (`flock`), so a killed process leaves none behind; the number in the file is only
    for the message to the second comer.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        """Create the directory (0700) if need be and lock it. Raises `Locked` or `Unusable`."""
        self.directory = Path(directory)
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = os.open(self.directory / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise Unusable(directory, _explain(error)) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._file, 0)
            with contextlib.suppress(OSError):  # on a full disk: the number is only for a message
                os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError:
            owner = _read_pid(self._file)
            os.close(self._file)
            raise Locked(directory, owner) from None
        except OSError as error:
            os.close(self._file)
            raise Unusable(directory, _explain(error)) from error

    def release(self) -> None:
        """Give the directory free. The file stays: removing it would race with the next owner."""
        with contextlib.suppress(OSError):
            os.ftruncate(self._file, 0)
        os.close(self._file)


def find_holder(directory: str | os.PathLike[str]) -> int:
    """The process that holds a directory now; 0 if none does, or if nobody knows. Nothing is made or changed.

    The lock is tried only if there is a number: who starts just now has not written one, and must not be in the way.
    """
    try:
        file = os.open(Path(directory) / LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        owner = _read_pid(file)
        if owner:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return 0  # the lock could be had: the number was left behind by a process that was killed
    except BlockingIOError:
        return owner
    finally:
        os.close(file)


def _read_pid(file: int) -> int:
    text = os.pread(file, 32, 0).strip()
    return int(text) if text.isdigit() else 0


def _explain(error: OSError) -> str:
    """What the system said, and what to do about it."""
    reason = (error.strerror or str(error)).lower()
    if isinstance(error, FileExistsError | NotADirectoryError):
        return "it is not a directory. Give another one."
    return f"{reason}. Give a directory that this user can write to."
