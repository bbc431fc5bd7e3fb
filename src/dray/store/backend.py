"""The seam between the store and its durable medium. LMDB and memory implement it today, etcd can later."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import NamedTuple, Protocol

import msgspec

from dray.store.records import Event, EventType, Key

FIRST_REVISION = 1
"""The revision of an empty store. Not 0, which Kubernetes clients read as "any revision"."""


class Entry(NamedTuple):
    """One stored change as a backend gives it back. `previous_revision` is 0 for ADDED."""

    type: EventType
    key: Key
    revision: int
    create_revision: int
    previous_revision: int
    data: bytes


class Horizons(msgspec.Struct, frozen=True):
    """Up to which revision events were dropped: `floor` for all resources, more for those in `resources`."""

    floor: int = 0
    resources: Mapping[str, int] = {}

    def of(self, resource: str) -> int:
        return max(self.floor, self.resources.get(resource, 0))


class Contents(NamedTuple):
    """Everything on disk. `entries` come in revision order and are read while they are iterated."""

    revision: int
    horizons: Horizons
    entries: Iterable[Entry]


class Batch(NamedTuple):
    """What one commit makes durable, all or nothing.

    `forget` are revisions that neither the present nor the kept history needs any more; `horizons` say, for
    the resources they belonged to, where history now starts. `revision` is the highest ever acknowledged or
    contained here; a backend that forgets remembers it, so that the counter never goes back.
    """

    events: list[Event]
    forget: list[int]
    horizons: Mapping[str, int]
    revision: int


class Backend(Protocol):
    """A durable log of changes by revision. Called by one thread at a time, except for `backup`."""

    blocking: bool
    """Whether `commit` waits for a disk or a network and so belongs on a thread of its own."""

    location: str
    """Where the data is, for messages."""

    used_bytes: int
    quota_bytes: int
    """How much is in use, and how much may be; 0 where nobody counts."""

    outdated: set[Key]
    """What should be written anew, because it is stored otherwise than it would be now; known once all was loaded."""

    def load(self) -> Contents:
        """Read everything. Called once, before the first commit. Raises `Corrupt`."""
        ...

    def commit(self, batch: Batch) -> None:
        """Make the batch durable before returning; on `StorageError` none of it will be there.

        `OutOfSpace` means that a batch of events that need no more room could be written all the same.
        """
        ...

    def refusal(self) -> str:
        """Why nothing may be written now that needs more room; empty if it may. Called on the event loop."""
        ...

    def backup(self, path: str | PathLike[str]) -> None:
        """Write a consistent copy to a new file while commits go on. Raises `BackupError`."""
        ...

    def close(self) -> None:
        """Let go of files and locks. No calls after that."""
        ...
