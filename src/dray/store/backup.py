"""Backups from outside the store: of a directory that a server may be using, and back into an empty one."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

import lmdb

from dray.store import lmdb_file
from dray.store.backend import FIRST_REVISION
from dray.store.errors import BackupError, Corrupt, Locked
from dray.store.frame import FrameError, decode_entry, decode_revision
from dray.store.lock import DirectoryLock
from dray.store.probe import probe

COPIED_AT_ONCE = 1 << 20
REVISION_LEAP = 1_000_000_000
"""How far a restored store jumps ahead. Clients may have seen later revisions than the backup holds; none of
those may ever name something else, so the counter passes them all (and every old watch has to list again)."""


def backup(directory: str | PathLike[str], path: str | PathLike[str]) -> None:
    """Copy the database of a directory, in use or not, to a new file. Raises `BackupError`, `Corrupt`."""
    source = Path(directory)
    file = source / lmdb_file.NAME
    if not file.exists():
        raise BackupError(f"cannot back up {source}: there is no database in it")
    with contextlib.ExitStack() as stack:
        try:
            stack.callback(DirectoryLock(source).release)
            probe(file)
        except Locked:
            pass  # A running server has found it sound, and the probe could not follow its writes.
        try:
            env = stack.enter_context(lmdb.open(os.fspath(source), readonly=True, max_dbs=2, mode=0o600))
        except lmdb.Error as error:
            raise BackupError(f"cannot back up {source}: {error}") from error
        lmdb_file.write_copy(env, Path(path))


def restore(path: str | PathLike[str], directory: str | PathLike[str]) -> None:
    """Make a backup the database of a directory that has none.

    The directory appears complete or not at all. Raises `BackupError` when it already holds a database,
    `Corrupt` when the backup is damaged, `Locked` or `Unusable`.
    """
    source = Path(path)
    if not source.is_file():
        raise BackupError(f"cannot restore {source}: there is no such file")
    probe(source)
    lock = DirectoryLock(directory)
    target = lock.directory / lmdb_file.NAME
    new = target.with_name(target.name + ".restore")
    try:
        if target.exists():
            raise BackupError(f"cannot restore into {lock.directory}: it already holds a database. Move it away.")
        _copy(source, new)
        _leap(source, new)
        lmdb_file.publish(new, target)
    except (OSError, lmdb.Error) as error:
        raise BackupError(f"cannot restore {source} into {lock.directory}: {error}") from error
    finally:
        new.unlink(missing_ok=True)
        lock.release()


def _copy(source: Path, new: Path) -> None:
    """Copy a file into a new one (0600). Holes stay holes: a file of kilobytes may say that it has terabytes."""
    new.unlink(missing_ok=True)
    with source.open("rb") as there, open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as here:
        size = os.fstat(there.fileno()).st_size
        for start, end in _pieces(there.fileno(), size):
            here.seek(start)
            here.write(os.pread(there.fileno(), end - start, start))
        here.truncate(size)


def _pieces(file: int, size: int) -> Iterator[tuple[int, int]]:
    """Where a file has something, a part at a time."""
    start = 0
    while start < size:
        try:
            start = os.lseek(file, start, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return  # nothing but a hole up to the end
            raise
        end = min(os.lseek(file, start, os.SEEK_HOLE), start + COPIED_AT_ONCE)
        yield start, end
        start = end


def _leap(source: Path, file: Path) -> None:
    """Check every frame of the copy, then put counter and horizons ahead of all that clients may know."""
    with lmdb_file.open_alone(file, map_size=file.stat().st_size + (1 << 24)) as env:
        try:
            log, meta = (env.open_db(name, create=False) for name in (b"log", b"meta"))
            with env.begin(meta) as txn:
                revision = lmdb_file.read_meta(txn).revision
            with env.begin(log) as txn:
                for key, frame in txn.cursor():
                    revision = max(revision, decode_entry(decode_revision(key), frame).revision)
        except (*lmdb_file.DAMAGE, FrameError) as error:
            raise Corrupt(source, str(error)) from error
        ahead = max(revision, FIRST_REVISION) + REVISION_LEAP
        with env.begin(write=True) as txn:
            lmdb_file.write_meta(txn, meta, ahead, {}, floor=ahead)
