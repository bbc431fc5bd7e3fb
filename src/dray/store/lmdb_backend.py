"""The embedded backend: one LMDB file (see `lmdb_file`) in a locked directory, written by one thread."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

import lmdb

from dray.store import lmdb_file
from dray.store.backend import FIRST_REVISION, Batch, Contents, Entry
from dray.store.encryption import NONE, Encryption, is_sealed
from dray.store.errors import Corrupt, OutOfSpace, StorageError, Unusable
from dray.store.frame import FrameError, decode_entry, decode_revision, encode_event, encode_revision
from dray.store.local_store import LocalStore
from dray.store.lock import DirectoryLock
from dray.store.log import Retention
from dray.store.probe import probe, take_seal, write_seal
from dray.store.records import Decode, Key
from dray.store.reserve import AHEAD, ALMOST_FULL, Reserve
from dray.store.stamping import stamped
from dray.store.store import Store

SEAL_FILE = "sealed"
MAP_SIZE = 1 << 30
"""The first size of the memory map, address space only; it doubles when the file outgrows it."""
QUOTA_BYTES = 8 << 30


class LmdbBackend:
    """Stores batches in LMDB, each in one transaction that is synced before `commit` returns."""

    blocking = True

    def __init__(
        self,
        directory: str | PathLike[str],
        *,
        map_size: int = MAP_SIZE,
        quota_bytes: int = QUOTA_BYTES,
        encryption: Encryption = NONE,
    ) -> None:
        """Lock the directory and open its database, made if absent. Raises `Locked`, `Unusable`, `Corrupt`."""
        self._lock = DirectoryLock(directory)
        self.quota_bytes = quota_bytes
        self.outdated: set[Key] = set()
        self._encryption = encryption
        self._page = 0
        self.used_bytes = 0
        """Bytes of the file that hold something."""
        self._unused = 0
        """Bytes of the file that hold nothing any more, and are written to before the file grows."""
        self._disk_full = False
        self._file = self._lock.directory / lmdb_file.NAME
        self._reserve = Reserve(self._file)
        self._seal = self._lock.directory / SEAL_FILE
        self._map_size = map_size
        # Growing the map must not meet a running backup, which reads from it.
        self._mapping = threading.Lock()
        self.location = os.fspath(self._file)
        try:
            if not self._file.exists():
                lmdb_file.create(self._file)
            elif not take_seal(self._file, self._seal):
                probe(self._file)
            self._open()
        except BaseException as error:
            self._lock.release()
            if isinstance(error, OSError):
                raise Unusable(directory, str(error)) from error
            raise

    def load(self) -> Contents:
        try:
            with self._env.begin(self._meta) as txn:
                meta = lmdb_file.read_meta(txn)
            with self._env.begin(self._log) as txn, txn.cursor() as cursor:
                self._note_size(txn)
                self._look_ahead()
                last = decode_revision(cursor.key()) if cursor.last() else FIRST_REVISION
        except (lmdb.Error, FrameError) as error:
            raise Corrupt(self._file, str(error)) from error
        return Contents(max(meta.revision, last), meta.horizons, self._entries())

    def commit(self, batch: Batch) -> None:
        if not batch.events and not batch.forget:
            return
        # Everything is encoded first: between the calls below the event loop can take the interpreter away.
        seal = self._encryption.seal
        frames = [
            (encode_revision(event.record.revision), encode_event(event, seal(event.record.key, event.record.data)))
            for event in batch.events
        ]
        try:
            while not self._write(frames, batch):
                self._grow()
        except lmdb.PanicError as error:
            raise StorageError(f"cannot write {self._file}: {error}. Restart dray once the disk works.") from error
        except lmdb.Error as error:
            free = self._reserve.free()
            if free >= ALMOST_FULL and not isinstance(error, lmdb.DiskError):
                raise StorageError(f"cannot write {self._file}: {error}") from error
            self._disk_full = True
            raise OutOfSpace(f"cannot write {self._file}: {error} ({_disk_full(free)})") from error

    def refusal(self) -> str:
        if self.used_bytes > self.quota_bytes:
            return (
                f"database space exceeded: {self._file} holds {self.used_bytes} bytes, its quota is {self.quota_bytes}."
                " Delete objects, whose room is free once they have left the history, or give a larger --quota-bytes."
            )
        if self._disk_full:
            free = self._reserve.free()
            if free < AHEAD + ALMOST_FULL and self._unused < AHEAD:
                return f"cannot write {self._file}: {_disk_full(free)}"
            self._disk_full = False
        return ""

    def backup(self, path: str | PathLike[str]) -> None:
        with self._mapping:
            lmdb_file.write_copy(self._env, Path(path))

    def close(self) -> None:
        self._env.close()
        with contextlib.suppress(OSError):  # Without a seal the next start only takes a look at the file.
            write_seal(self._file, self._seal)
        self._lock.release()

    def abandon(self) -> None:
        """Close without calling the file sound."""
        self._env.close()
        self._lock.release()

    def _open(self) -> None:
        """Open the file as it is. The map is at least twice the file, so that growing is rare."""
        self._map_size = max(self._map_size, 2 * self._file.stat().st_size)
        try:
            self._env = lmdb.open(
                os.fspath(self._lock.directory),
                map_size=self._map_size,
                max_dbs=2,
                max_readers=16,
                mode=0o600,
            )
        except lmdb_file.DAMAGE as error:
            raise Corrupt(self._file, str(error)) from error
        except lmdb.Error as error:
            raise Unusable(self._lock.directory, str(error)) from error
        try:
            self._log = self._env.open_db(b"log", create=False)
            self._meta = self._env.open_db(b"meta", create=False)
        except lmdb.Error as error:
            self._env.close()
            raise Corrupt(self._file, str(error)) from error

    def _entries(self) -> Iterator[Entry]:
        """All changes in order, checked. Afterwards the file is mapped anew: the pages read go out of memory."""
        try:
            with self._env.begin(self._log) as txn:
                for key, frame in txn.cursor():
                    yield self._opened(decode_entry(decode_revision(key), frame))
        except (lmdb.Error, FrameError) as error:
            raise Corrupt(self._file, str(error)) from error
        self._env.close()
        self._open()

    def _opened(self, entry: Entry) -> Entry:
        """What an entry holds, with its revision: an encrypted one may have been moved here as it was."""
        if self._encryption is NONE and not is_sealed(entry.data):
            return entry
        data, is_outdated = self._encryption.open(entry.key, entry.data)
        (self.outdated.add if is_outdated else self.outdated.discard)(entry.key)
        if data is entry.data:
            return entry
        return entry._replace(data=stamped(data, entry.revision))

    def _write(self, frames: list[tuple[bytes, bytes]], batch: Batch) -> bool:
        """One transaction, synced; False, and nothing done, when the map is too small for it."""
        try:
            with self._env.begin(self._log, write=True) as txn:
                for revision in batch.forget:
                    txn.delete(encode_revision(revision))
                if batch.forget:
                    lmdb_file.write_meta(txn, self._meta, batch.revision, batch.horizons)
                with txn.cursor() as cursor:
                    _, added = cursor.putmulti(frames, append=True)
                if added != len(frames):
                    raise lmdb.Error("revisions are not in order")
                self._note_size(txn)
        except lmdb.MapFullError:
            return False
        self._look_ahead()
        return True

    def _note_size(self, txn: lmdb.Transaction) -> None:
        """How much of the file holds something."""
        stat = txn.stat(self._log)
        self._page = stat["psize"]
        self.used_bytes = self._page * (stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"])

    def _look_ahead(self) -> None:
        """How much of the file holds nothing any more; and room for deletes, if the disk has it."""
        end = self._page * (self._env.info()["last_pgno"] + 1)
        self._unused = max(end - self.used_bytes, 0)
        if not self._reserve.secure(end):
            self._disk_full = True

    def _grow(self) -> None:
        with self._mapping:
            self._map_size *= 2
            self._env.set_mapsize(self._map_size)


def open_store(
    directory: str | PathLike[str],
    decode: Decode,
    *,
    retention: Retention | None = None,
    map_size: int = MAP_SIZE,
    quota_bytes: int = QUOTA_BYTES,
    encryption: Encryption = NONE,
) -> Store:
    """The store in a state directory, made if absent. Raises `Locked`, `Unusable`, `Corrupt`, `Undecipherable`."""
    backend = LmdbBackend(directory, map_size=map_size, quota_bytes=quota_bytes, encryption=encryption)
    try:
        return LocalStore(backend, decode, retention=retention)
    except BaseException:
        backend.abandon()
        raise


def _disk_full(free: int) -> str:
    """What to add to a failure: what LMDB says of a full disk sends people looking for broken ones."""
    return (
        f"the disk is full: {free} bytes are free; deletes are taken, and once there is room, writing goes on by itself"
    )
