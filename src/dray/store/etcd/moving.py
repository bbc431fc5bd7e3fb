"""Moving in and out: what etcd holds as a backup file, as those of state directories are, and such a file into etcd."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import grpc
import lmdb

from dray.store import lmdb_file
from dray.store.backend import FIRST_REVISION
from dray.store.encryption import is_sealed
from dray.store.errors import BackupError, Corrupt
from dray.store.etcd.address import EtcdAddress
from dray.store.etcd.calls import RANGE, TXN
from dray.store.etcd.connection import is_too_large
from dray.store.etcd.generated import etcd_pb2 as pb
from dray.store.etcd.layout import Layout
from dray.store.etcd.loading import Loader
from dray.store.etcd.revisions import last_number, marked, unmarked
from dray.store.etcd.transactions import MOST_BYTES, MOST_OPERATIONS
from dray.store.frame import FrameError, decode_entry, decode_revision, encode_event, encode_revision
from dray.store.parts import in_parts
from dray.store.probe import probe
from dray.store.records import Event, EventType, Key, Record
from dray.store.stamping import NotOurs, stamped

MARK: Final = b"restored"


def backup(address: EtcdAddress, layout: Layout, path: Path) -> int:
    """Writes everything that etcd holds now to a new file; how many objects that are. Raises StoreError."""
    if path.exists():
        raise BackupError(f"cannot write backup {path}: it exists. Give another name.")
    loader = Loader(address)
    try:
        loaded = loader.load(layout, is_latest=True)
    finally:
        loader.close()
    partial = path.with_name(path.name + ".partial")
    try:
        partial.unlink(missing_ok=True)
        frames = _frames(layout, sorted(loaded.values, key=lambda kv: kv.mod_revision))
        _write(partial, frames, last_number(loaded.revision))
        lmdb_file.publish(partial, path)
    except NotOurs as error:
        raise BackupError(f"etcd at {address} holds what was not written by dray") from error
    except (OSError, lmdb.Error) as error:
        raise BackupError(f"cannot write backup {path}: {error}") from error
    finally:
        partial.unlink(missing_ok=True)
    return len(frames)


def restore(path: Path, address: EtcdAddress, layout: Layout) -> int:
    """Puts what a backup holds into etcd, where nothing may be under the prefix; how much. Raises StoreError."""
    if not path.is_file():
        raise BackupError(f"cannot restore {path}: there is no such file")
    probe(path)
    records = _latest(path)
    loader = Loader(address)
    start, end = layout.range
    try:
        if loader.call(RANGE, pb.RangeRequest(key=start, range_end=end, count_only=True)).count:
            raise BackupError(f"cannot restore into {address}: there is something under {layout.prefix} already.")
        # The largest come first: if etcd takes one of them, it takes all.
        keys = sorted(records, key=lambda key: -len(records[key]))
        for part in in_parts(keys, lambda key: len(records[key]), MOST_BYTES, MOST_OPERATIONS):
            puts = [_put(layout, key, records[key], position) for position, key in enumerate(part)]
            largest = part[0]
            loader.call(TXN, pb.TxnRequest(success=puts))
    except grpc.RpcError as error:
        if is_too_large(error):
            raise BackupError(
                f"cannot restore into {address}: {largest} has {len(records[largest])} bytes: {error.details()}. "
                "Nothing was restored; let etcd take more (--max-request-bytes)."
            ) from error
        raise BackupError(
            f"cannot restore into {address}: {error.details()}. A part may be there: remove what is under "
            f"{layout.prefix} before you try again."
        ) from error
    finally:
        loader.close()
    return len(records)


def _frames(layout: Layout, values: list[Any]) -> list[tuple[bytes, bytes]]:
    """Frames in the order of changes. Several keys of etcd may have one revision, so they are numbered anew."""
    frames: list[tuple[bytes, bytes]] = []
    for kv in values:
        key = layout.key(kv.key)
        if key is not None:
            revision = FIRST_REVISION + 1 + len(frames)
            record = Record(key, revision, revision, _numbered(unmarked(kv.value), revision))
            frames.append((encode_revision(revision), encode_event(Event(EventType.ADDED, record, None))))
    return frames


def _write(file: Path, frames: list[tuple[bytes, bytes]], revision: int) -> None:
    """A database, which says that it has come as far as etcd."""
    lmdb_file.create(file)
    size = sum(len(frame) for _, frame in frames)
    with lmdb_file.open_alone(file, map_size=4 * size + 8192 * len(frames) + (1 << 24)) as env:
        log, meta = (env.open_db(name, create=False) for name in (b"log", b"meta"))
        with env.begin(write=True) as txn:
            for number, frame in frames:
                txn.put(number, frame, db=log)
            lmdb_file.write_meta(txn, meta, max(revision, FIRST_REVISION + len(frames)), {})
    os.chmod(file, 0o600)


def _latest(path: Path) -> dict[Key, bytes]:
    """What a backup leaves when it is replayed. Raises Corrupt."""
    found: dict[Key, bytes] = {}
    try:
        with lmdb_file.open_alone(path, readonly=True, map_size=path.stat().st_size + (1 << 24)) as env:
            log = env.open_db(b"log", create=False)
            for entry in _entries(env, log):
                if entry.type is EventType.DELETED:
                    found.pop(entry.key, None)
                else:
                    found[entry.key] = entry.data
    except (*lmdb_file.DAMAGE, FrameError) as error:
        raise Corrupt(path, str(error)) from error
    return found


def _entries(env: Any, log: Any) -> Iterator[Any]:
    with env.begin(log) as txn:
        for number, frame in txn.cursor():
            yield decode_entry(decode_revision(number), frame)


def _put(layout: Layout, key: Key, data: bytes, position: int) -> pb.RequestOp:
    value = marked(_numbered(data, 0), MARK, position)
    return pb.RequestOp(request_put=pb.PutRequest(key=layout.path(key), value=value))


def _numbered(data: bytes, revision: int) -> bytes:
    """An object with a revision; one that is encrypted gets it when it is read. Raises NotOurs."""
    return data if is_sealed(data) else stamped(data, revision)
