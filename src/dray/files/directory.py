"""A directory by its descriptor, and what may be done in it by name."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
from pathlib import Path
from types import TracebackType
from typing import Final

OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
LONGEST_NAME: Final = 255
_FOLLOW_NOTHING: Final = os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_TEMPORARY: Final = ".tmp"


class UnsafeFile(OSError):
    """What is there could have been put there, or changed, by somebody who is not trusted. `strerror` says why."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(errno.EPERM, why, str(path))


def check_name(name: str) -> str:
    """The name, if it names something directly in a directory. Raises UnsafeFile."""
    if not name or name in (".", "..") or "/" in name or "\0" in name or len(os.fsencode(name)) > LONGEST_NAME:
        raise UnsafeFile(Path(repr(name)), f"{name[:64]!r} is not the name of a file")
    return name


class Directory:
    """An open directory into which only trusted users (root, and who runs this process) can put anything.

    Everything is found by name relative to the descriptor, so that it does not matter what happens to the path.
    Raises OSError, of which UnsafeFile is one, with the path. Closed when nobody needs it, or as a context manager.
    """

    def __init__(self, descriptor: int, path: Path) -> None:
        """Use `open` or `child`."""
        self.descriptor = descriptor
        self.path = path

    @classmethod
    def open(cls, path: Path, *, create: int | None = None, tighten: bool = False) -> Directory:
        """A directory that the operator named; links in its path are followed if only trusted users can change them.

        `create` is the mode to make it with if it is missing, parents too. With `tighten`, an own directory that others
        can write to is closed to them; otherwise, and if it is not an own one, it is refused.
        """
        if create is not None:
            path.mkdir(mode=create, parents=True, exist_ok=True)
        real = Path(os.path.realpath(path, strict=True))
        for parent in real.parents:
            _check_parent(parent)
        opened = cls(os.open(real, _DIRECTORY | os.O_NOFOLLOW), path)
        return opened._checked(tighten=tighten)

    def child(self, name: str, *, create: int | None = None) -> Directory:
        """A directory in this one; `create` is the mode to make it with if it is missing."""
        check_name(name)
        if create is not None:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, create, dir_fd=self.descriptor)
        opened = Directory(self._open(name, _DIRECTORY), self.path / name)
        return opened._checked(tighten=False)

    def names(self) -> list[str]:
        """What is in the directory, sorted."""
        return sorted(os.listdir(self.descriptor))

    def status(self, name: str) -> os.stat_result | None:
        """What there is under a name, itself and not what it points to; None if there is nothing."""
        try:
            return os.stat(check_name(name), dir_fd=self.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def open_file(self, name: str, flags: int = os.O_RDONLY) -> int:
        """A descriptor of a regular file of a trusted owner, by default to read it. Never waits."""
        descriptor = self._open(name, flags | os.O_NONBLOCK)
        try:
            _check_file(os.fstat(descriptor), self.path / name, to_write=flags & os.O_ACCMODE != os.O_RDONLY)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def make_pipe(self, name: str) -> None:
        """A new named pipe of the owner alone. Raises FileExistsError if anything has that name."""
        os.mkfifo(check_name(name), 0o600, dir_fd=self.descriptor)

    def open_pipe(self, name: str, flags: int) -> int:
        """A descriptor of a named pipe of a trusted owner. Never waits: nobody at the other end is an OSError."""
        descriptor = self._open(name, flags | os.O_NONBLOCK)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISFIFO(status.st_mode):
                raise UnsafeFile(self.path / name, "it is not a pipe")
            _check_owner(status, self.path / name)
            os.set_blocking(descriptor, True)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def read(self, name: str, limit: int) -> bytes:
        """The content of a file, cut off after `limit` bytes."""
        with open(self.open_file(name), "rb") as file:
            return file.read(min(limit, os.fstat(file.fileno()).st_size + 1))  # which is what Python makes room for

    def create(self, name: str, mode: int = 0o600, *, flags: int = os.O_WRONLY) -> int:
        """A descriptor of a new file. Raises FileExistsError if anything has that name, a dangling link for one."""
        descriptor = self._open(name, flags | os.O_CREAT | os.O_EXCL, mode)
        try:
            os.fchmod(descriptor, mode)  # whatever the umask says
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def replace(self, name: str, data: bytes, mode: int = 0o600, *, sync: bool = False) -> os.stat_result:
        """Old content or new under a name, never half of it; with `sync` the new one is on disk. How it is now."""
        check_name(name)
        temporary = f".{name[:100]}-{secrets.token_hex(8)}{_TEMPORARY}"
        try:
            with os.fdopen(self.create(temporary, mode), "wb") as file:
                file.write(data)
                file.flush()
                if sync:
                    os.fdatasync(file.fileno())
                status = os.fstat(file.fileno())
            self.rename(temporary, name)
        except BaseException:
            self.remove(temporary)
            raise
        return status

    def rename(self, name: str, other: str) -> None:
        """Gives something another name, over what had it."""
        os.replace(check_name(name), check_name(other), src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)

    def remove(self, name: str) -> None:
        """Removes a file, a link itself for one; nothing happens if there is none."""
        try:
            os.unlink(check_name(name), dir_fd=self.descriptor)
        except FileNotFoundError:
            return

    def remove_tree(self, name: str) -> None:
        """Removes whatever has a name, a directory with all that is in it, as far as possible. No link is followed."""
        found = self.status(name)
        if found is not None and stat.S_ISDIR(found.st_mode):
            shutil.rmtree(name, ignore_errors=True, dir_fd=self.descriptor)
        else:
            self.remove(name)

    def remove_left(self) -> None:
        """Removes what a process that was killed in `replace` has left. Only for directories of one user."""
        for name in self.names():
            if name.endswith(_TEMPORARY):
                self.remove(name)

    def close(self) -> None:
        """Gives the descriptor back."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def __del__(self) -> None:
        self.close()  # a thread that still uses it keeps it from being collected

    def __enter__(self) -> Directory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self, name: str, flags: int, mode: int = 0o600) -> int:
        check_name(name)
        try:
            return os.open(name, flags | _FOLLOW_NOTHING, mode, dir_fd=self.descriptor)
        except OSError as error:
            path = self.path / name
            if error.errno == errno.ELOOP:
                raise UnsafeFile(path, "it is a symbolic link, which is not followed") from None
            if error.errno == errno.ENXIO:
                raise UnsafeFile(path, "it is not a regular file, or nobody is at its other end") from None
            raise OSError(error.errno, error.strerror, str(path)) from None

    def _checked(self, *, tighten: bool) -> Directory:
        try:
            status = os.fstat(self.descriptor)
            own = status.st_uid == os.geteuid()
            if tighten and own and status.st_mode & OTHERS_WRITE:
                os.fchmod(self.descriptor, stat.S_IMODE(status.st_mode) & ~OTHERS_WRITE)
                status = os.fstat(self.descriptor)
            _check_owner(status, self.path)
        except BaseException:
            self.close()
            raise
        return self


def is_trusted(owner: int) -> bool:
    """Whether a user may decide what this process reads: root, and who runs it."""
    return owner in (0, os.geteuid())


def _check_owner(status: os.stat_result, path: Path) -> None:
    if not is_trusted(status.st_uid):
        raise UnsafeFile(path, f"it belongs to user {status.st_uid}, not to root or to user {os.geteuid()}")
    if status.st_mode & OTHERS_WRITE:
        mode = stat.S_IMODE(status.st_mode)
        raise UnsafeFile(path, f"other users can write to it (mode {mode:04o}); run: chmod go-w {path}")


def _check_parent(path: Path) -> None:
    """Whoever can write to a parent can put another directory in its place, unless it is sticky, as /tmp is."""
    status = os.stat(path, follow_symlinks=False)
    if status.st_mode & OTHERS_WRITE and not status.st_mode & stat.S_ISVTX:
        raise UnsafeFile(path, f"other users can write to it (mode {stat.S_IMODE(status.st_mode):04o})")
    if not is_trusted(status.st_uid):
        raise UnsafeFile(path, f"it belongs to user {status.st_uid}, not to root or to user {os.geteuid()}")


def _check_file(status: os.stat_result, path: Path, *, to_write: bool) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise UnsafeFile(path, "it is not a regular file")
    if to_write and status.st_nlink > 1:
        raise UnsafeFile(path, "it has another name, too (a hard link): what is written here would be there")
    _check_owner(status, path)
