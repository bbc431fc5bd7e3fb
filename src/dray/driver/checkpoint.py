"""What a driver has prepared, on disk, so that a restarted driver knows: one small file per claim.

A record is written before the first device is touched, and again when the claim is ready. A crash in between leaves a
record that says "begun", and unprepare cleans up after it. Files are replaced whole; a file that does not read back is
set aside and reported, and its claim counts as never prepared.
"""

from __future__ import annotations

import logging
import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from dray.api.resource import NetworkDeviceData
from dray.driver.claims import Claim
from dray.driver.errors import DriverError
from dray.files import Directory

VERSION: Final = 1
SUFFIX: Final = ".json"
MAX_BYTES: Final = 16 * 1024 * 1024
_UID: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,126}[A-Za-z0-9])?")

Stamp = tuple[int, int]

log = logging.getLogger(__name__)


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A device as the node was told of it."""

    request: str
    pool: str
    device: str
    cdi_ids: tuple[str, ...] = ()
    share_id: str = ""
    data: Any = None
    """For the status of the claim, as is `network_data`."""
    network_data: NetworkDeviceData | None = None


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A claim that was begun; `ready` if it is prepared, and then with these devices."""

    claim: Claim
    ready: bool = False
    devices: tuple[Prepared, ...] = ()
    cdi_spec: bytes = b""
    """The spec file as it was written, to write it again if it gets lost."""


class _File(msgspec.Struct, frozen=True):
    version: int
    checksum: int
    record: msgspec.Raw


def check_uid(uid: str) -> None:
    """Raises DriverError for a uid that cannot be part of file names."""
    if not _UID.fullmatch(uid):
        raise DriverError(f"claim uid {uid!r} is not valid: letters, digits, '-', '_' and '.', at most 128 of them")


class Checkpoint:
    """The records of a directory. While a driver is updated, two instances of it share the directory."""

    def __init__(self, directory: Path) -> None:
        """Reads what an earlier process left. Raises DriverError if the directory cannot be used."""
        self._records: dict[str, tuple[Stamp, Record]] = {}
        try:
            self._directory = Directory.open(directory, create=0o700, tighten=True)
            self._directory.remove_left()
        except OSError as error:
            raise DriverError(f"cannot use {directory} for the claims in use: {error.strerror}") from None
        list(self)

    def get(self, uid: str) -> Record | None:
        """What is known of a claim."""
        name = f"{uid}{SUFFIX}"
        path = self._directory.path / name
        try:
            status = self._directory.status(name)
            if status is None:
                self._records.pop(uid, None)
                return None
            known = self._records.get(uid)
            if known is None or known[0] != _stamp(status):
                known = self._records[uid] = _stamp(status), _decode(self._directory.read(name, MAX_BYTES), uid)
        except FileNotFoundError:
            self._records.pop(uid, None)
            return None
        except OSError as error:
            raise DriverError(f"cannot read {path}: {error.strerror}") from None
        except ValueError as error:  # msgspec's errors are of this kind too
            aside = f"{name}.corrupt"
            self._directory.rename(name, aside)
            log.error("claim record %s cannot be read and is set aside as %s: %s", path, aside, error)
            return None
        return known[1]

    def __iter__(self) -> Iterator[Record]:
        """All records; those of another instance as they were when they were first seen."""
        for name in self._directory.names():
            if not name.endswith(SUFFIX):
                continue
            uid = name.removesuffix(SUFFIX)
            record = self._records[uid][1] if uid in self._records else self.get(uid)
            if record is not None:
                yield record

    def put(self, record: Record) -> None:
        """Keeps a record. Raises DriverError if it cannot be written; then nothing has changed."""
        uid = record.claim.uid
        data = msgspec.json.encode(record)
        whole = msgspec.json.encode(_File(VERSION, zlib.crc32(data), msgspec.Raw(data)))
        name = f"{uid}{SUFFIX}"
        try:
            status = self._directory.replace(name, whole)
        except OSError as error:
            raise DriverError(f"cannot write {self._directory.path / name}: {error.strerror}") from None
        self._records[uid] = _stamp(status), record

    def remove(self, uid: str) -> None:
        """Forgets a claim. Raises DriverError."""
        name = f"{uid}{SUFFIX}"
        try:
            self._directory.remove(name)
        except OSError as error:
            raise DriverError(f"cannot remove {self._directory.path / name}: {error.strerror}") from None
        self._records.pop(uid, None)


def _stamp(status: os.stat_result) -> Stamp:
    """Changes with every write: a file is replaced by another one, if not at another time."""
    return status.st_ino, status.st_mtime_ns


def _decode(content: bytes, uid: str) -> Record:
    """Raises ValueError if the file is not as it was written."""
    file = msgspec.json.decode(content, type=_File)
    if file.version != VERSION:
        raise ValueError(f"version {file.version} is not known")
    data = bytes(file.record)
    if zlib.crc32(data) != file.checksum:
        raise ValueError("the checksum is wrong")
    record = msgspec.json.decode(data, type=Record)
    if record.claim.uid != uid:
        raise ValueError(f"it is of claim {record.claim.uid}")
    return record
