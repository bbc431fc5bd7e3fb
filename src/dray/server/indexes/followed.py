"""A copy of something in the store, brought up to date when it is asked for: no task, no delay, no work while idle."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from dray.store import EventType, Key, Slow, Store, Watcher

Apply = Callable[[Key, Any], None]
"""Takes the object that is now at a key; None if there is none any more."""
AT_ONCE: Final = 200
AT_ONCE_BYTES: Final = 256 * 1024
"""So many objects, of so many bytes, are read in one turn of the loop by whoever can wait: after a start, every object
has to be decoded."""


class Followed:
    """One resource. `apply` hears of everything that is there, and then of every change, in order."""

    def __init__(self, store: Store, resource: str, apply: Apply) -> None:
        self._store = store
        self._resource = resource
        self._apply = apply
        self._known: dict[Key, None] = {}
        self._watcher: Watcher | None = None
        self._reading = asyncio.Lock()

    def catch_up(self) -> bool:
        """Applies what has changed since the last time, if anything has. Raises Closed when the store is."""
        if self._watcher is None:
            self._read_all()
        elif self._watcher.is_current:
            return False
        else:
            try:
                events = self._watcher.read()
            except Slow:  # nobody asked for so long that the changes are gone
                self._read_all()
            else:
                for event in events:
                    self._put(event.record.key, None if event.type is EventType.DELETED else event.record.obj)
        return True

    async def read_in_turns(self) -> None:
        """What the first `catch_up` would do at once, a part in each turn of the loop. Raises Closed."""
        async with self._reading:
            if self._watcher is None:
                await self._read_parts()

    async def _read_parts(self) -> None:
        """Whatever changes meanwhile is heard of afterwards: all changes since before the first part are."""
        listing = self._store.list(self._resource, limit=1)
        watcher = self._store.watch(self._resource, listing.revision)
        after, left = None, AT_ONCE_BYTES
        while records := self._store.list(self._resource, after=after, limit=AT_ONCE).records:
            after = (records[-1].key.namespace, records[-1].key.name)
            for record in records:
                if left <= 0:
                    left = AT_ONCE_BYTES
                    if await self._is_read_meanwhile():
                        watcher.close()
                        return
                left -= record.size + 1
                self._put(record.key, record.obj)
            left = 0
        self._watcher = watcher

    async def _is_read_meanwhile(self) -> bool:
        """Gives others a turn; whether one of them could not wait, and has read all of it."""
        await asyncio.sleep(0)
        return self._watcher is not None

    @property
    def is_read(self) -> bool:
        """Whether all that was there has been read once."""
        return self._watcher is not None

    @property
    def is_current(self) -> bool:
        """Whether nothing has changed since the last time."""
        return self._watcher is not None and self._watcher.is_current

    def close(self) -> None:
        """Lets go of the store."""
        if self._watcher is not None:
            self._watcher.close()

    def _read_all(self) -> None:
        listing = self._store.list(self._resource)
        self._watcher = self._store.watch(self._resource, listing.revision)
        present = {record.key for record in listing.records}
        for key in [key for key in self._known if key not in present]:
            self._put(key, None)
        for record in listing.records:
            self._put(record.key, record.obj)

    def _put(self, key: Key, obj: Any) -> None:
        if obj is None:
            self._known.pop(key, None)
        else:
            self._known[key] = None
        self._apply(key, obj)
