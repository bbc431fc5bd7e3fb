"""Backups from outside the store: of a directory that a server may be using, and back into an empty one."""

from __future__ import annotations

import contextlib
import os
import shutil
from os import PathLike
from pathlib import Path

import lmdb

from dray.store import lmdb_file
from dray.store.backend import FIRST_REVISION
from dray.store.errors import BackupError, Corrupt, Locked
from dray.store.frame import FrameError, decode_entry, decode_revision
from dray.store.lock import DirectoryLock
from dray.store.probe import probe

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
        shutil.copyfile(source, new)
        new.chmod(0o600)
        _leap(source, new)
        lmdb_file.publish(new, target)
    except (OSError, lmdb.Error) as error:
        raise BackupError(f"cannot restore {source} into {lock.directory}: {error}") from error
    finally:
        new.unlink(missing_ok=True)
        lock.release()


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
