"""Everything the store refuses, as types. Callers map them to HTTP statuses; the text is for people."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dray.store.records import Key, Record


class StoreError(Exception):
    """Base of all errors raised by `dray.store`."""


class NotFound(StoreError):
    """The key holds no record."""

    def __init__(self, key: Key) -> None:
        super().__init__(f"{key} not found")
        self.key = key


class Exists(StoreError):
    """A create met a record that is already there."""

    def __init__(self, current: Record) -> None:
        super().__init__(f"{current.key} already exists")
        self.key = current.key
        self.current = current


class Conflict(StoreError):
    """The record has another revision than the writer expected. `current` is what is stored, durably."""

    def __init__(self, current: Record, expected: int) -> None:
        super().__init__(f"{current.key} is at revision {current.revision}, the writer expected {expected}")
        self.key = current.key
        self.current = current
        self.expected = expected


class Expired(StoreError):
    """The revision is older than the kept history (HTTP 410): list again and start from there."""

    def __init__(self, resource: str, requested: int, horizon: int) -> None:
        super().__init__(f"too old resource version: {requested} ({horizon}) of {resource}")


class FutureRevision(StoreError):
    """A list was asked for at a revision that the store has not reached."""

    def __init__(self, requested: int, current: int) -> None:
        super().__init__(f"too large resource version: {requested}, current: {current}")


class Slow(StoreError):
    """The watcher stood still for so long that events it had not read left the history. It is cut off."""

    def __init__(self, resource: str, revision: int) -> None:
        super().__init__(f"watch of {resource} fell behind the kept history after revision {revision}")


class Closed(StoreError):
    """The store, or this watcher, was closed."""


class StorageError(StoreError):
    """The disk refused a write. It was not acknowledged and nobody has seen it; reads go on working."""


class OutOfSpace(StorageError):
    """There is no room for more: the disk is full, or the database has its quota. What needs none is written still."""


class ShareExceeded(OutOfSpace):
    """A namespace, or a kind of objects in none, has its share of the room. What needs none, and others, go on."""

    def __init__(self, key: Key, held: int, most: int, *, of: str = "") -> None:
        """`of` is the resource that has an account of its own in the namespace."""
        whose, what = ("namespace", key.namespace) if key.namespace else ("resource", key.resource)
        others = "one namespace, or one resource outside of namespaces,"
        stored = f"bytes of {of} stored" if of else "bytes stored"
        super().__init__(
            f'{whose} "{what}" has {held} {stored}, and {others} may have {most}. Delete some of its objects first.'
        )
        self.key = key


class TooLarge(StorageError):
    """A write is larger than the store takes, whatever room there is."""


class Unreachable(StorageError):
    """The cluster that keeps the data does not answer. Nothing was changed by who is told so."""


class Uncertain(StorageError):
    """A change was asked for and not answered: it may be made or not."""


class Locked(StoreError):
    """Another process uses the directory. `pid` is 0 when that process has not written its number yet."""

    def __init__(self, directory: str | os.PathLike[str], pid: int) -> None:
        owner = f"another dray (pid {pid})" if pid else "another dray"
        super().__init__(
            f"cannot use state directory {os.fspath(directory)}: {owner} is using it. "
            "Stop it, or give another directory."
        )


class Unusable(StoreError):
    """The directory cannot be created, read or written."""

    def __init__(self, directory: str | os.PathLike[str], problem: str) -> None:
        super().__init__(f"cannot use state directory {os.fspath(directory)}: {problem}")


class Corrupt(StoreError):
    """The database file is damaged. Nothing was changed; restoring a backup is the way out."""

    def __init__(self, file: str | os.PathLike[str], problem: str) -> None:
        super().__init__(
            f"database {os.fspath(file)} is damaged: {problem}. "
            "Move the file away and restore a backup with `dray restore`; nothing was changed."
        )
        self.problem = problem


class BackupError(StoreError):
    """A backup could not be written or restored; the message says where and why."""
