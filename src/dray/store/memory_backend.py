"""A backend without a disk, for tests and simulations: commits at once, on the caller's thread."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike

from dray.store.backend import FIRST_REVISION, Batch, Contents, Entry, Horizons
from dray.store.errors import BackupError
from dray.store.records import Event, Key


class MemoryBackend:
    """Keeps what was committed for as long as it lives; a second `Store` on it sees what a restart would."""

    blocking = False
    location = "memory"
    used_bytes = 0
    quota_bytes = 0

    def __init__(self) -> None:
        self.outdated: set[Key] = set()
        self._events: dict[int, Event] = {}
        self._revision = FIRST_REVISION
        self._horizons: dict[str, int] = {}

    def load(self) -> Contents:
        return Contents(self._revision, Horizons(resources=dict(self._horizons)), self._entries())

    def commit(self, batch: Batch) -> None:
        for event in batch.events:
            self._events[event.record.revision] = event
        for revision in batch.forget:
            self._events.pop(revision, None)
        self._horizons.update(batch.horizons)
        self._revision = max(self._revision, batch.revision)

    def refusal(self) -> str:
        return ""

    def backup(self, path: str | PathLike[str]) -> None:
        raise BackupError(f"cannot write {path}: a store in memory has nothing to back up")

    def close(self) -> None:
        """Nothing to release; the contents stay for the next `Store`."""

    def _entries(self) -> Iterator[Entry]:
        for revision, event in sorted(self._events.items()):
            record = event.record
            previous_revision = event.previous.revision if event.previous is not None else 0
            yield Entry(event.type, record.key, revision, record.create_revision, previous_revision, record.data)
