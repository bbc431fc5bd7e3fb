"""The database file: its tables, how it is made whole or not at all, and how it is copied.

::

    log    revision (8 bytes, big-endian) -> frame      every change that is present state or kept history
    meta   "format" "revision" "floor" "horizon:<resource>" -> 8 bytes, big-endian

The latest state has no table of its own: it is what replaying the log leaves, and the log holds nothing that neither
the present nor the history needs. A write thus appends to one place, and a start reads one table from end to end.
"revision" is only written when something is forgotten; otherwise the last revision in the log is the counter.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import lmdb

from dray.store.backend import FIRST_REVISION, Horizons
from dray.store.errors import BackupError
from dray.store.frame import FrameError, decode_revision, encode_revision

NAME = "data.mdb"
FORMAT = 1

DAMAGE = (
    lmdb.InvalidError,
    lmdb.CorruptedError,
    lmdb.PageNotFoundError,
    lmdb.VersionMismatchError,
    lmdb.NotFoundError,
    lmdb.IncompatibleError,
)
"""What LMDB raises for a file that is not, or no longer, a database of this kind."""

_HORIZON = b"horizon:"


class Meta(NamedTuple):
    """The contents of the `meta` table."""

    revision: int
    horizons: Horizons


def open_alone(file: Path, *, map_size: int = 1 << 24, readonly: bool = False) -> lmdb.Environment:
    """Open a file that nobody else has open."""
    return lmdb.open(
        os.fspath(file), subdir=False, lock=False, readonly=readonly, map_size=map_size, max_dbs=2, mode=0o600
    )


def create(file: Path) -> None:
    """Make an empty database, complete or not at all."""
    new = file.with_name(file.name + ".new")
    new.unlink(missing_ok=True)
    with open_alone(new) as env:
        env.open_db(b"log")
        meta = env.open_db(b"meta")
        with env.begin(write=True) as txn:
            txn.put(b"format", encode_revision(FORMAT), db=meta)
            write_meta(txn, meta, FIRST_REVISION, {})
    publish(new, file)


def read_meta(txn: lmdb.Transaction) -> Meta:
    """The `meta` table, which is the transaction's default one. Raises `FrameError` when it makes no sense."""
    numbers = {bytes(key): decode_revision(bytes(value)) for key, value in txn.cursor()}
    written_in = numbers.pop(b"format", 0)
    if written_in != FORMAT:
        raise FrameError(f"its format is {written_in}, this dray reads format {FORMAT}")
    revision, floor = numbers.pop(b"revision", FIRST_REVISION), numbers.pop(b"floor", 0)
    resources = {key.removeprefix(_HORIZON).decode(): number for key, number in numbers.items()}
    return Meta(revision, Horizons(floor, resources))


def write_meta(
    txn: lmdb.Transaction, meta: lmdb._Database, revision: int, horizons: Mapping[str, int], floor: int | None = None
) -> None:
    """Note the counter and where histories start; `floor` is that of every resource."""
    txn.put(b"revision", encode_revision(revision), db=meta)
    for resource, horizon in horizons.items():
        txn.put(_HORIZON + resource.encode(), encode_revision(horizon), db=meta)
    if floor is not None:
        txn.put(b"floor", encode_revision(floor), db=meta)


def write_copy(env: lmdb.Environment, path: Path) -> None:
    """Copy a consistent state of an open database, without its free pages, to a new file (0600)."""
    if path.exists():
        raise BackupError(f"cannot write backup {path}: it exists. Give another name.")
    partial = path.with_name(path.name + ".partial")
    try:
        partial.unlink(missing_ok=True)
        target = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            env.copyfd(target, compact=True)
        finally:
            os.close(target)
        publish(partial, path)
    except (OSError, lmdb.Error) as error:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise BackupError(f"cannot write backup {path}: {error}") from error


def publish(new: Path, file: Path) -> None:
    """Give a finished file its name, so that it survives a power cut under that name or not at all."""
    _sync(new)
    new.rename(file)
    _sync(file.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
