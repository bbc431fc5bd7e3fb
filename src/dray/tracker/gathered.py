"""Slices that changed and are not taken in yet, by pool: a pool is made anew as a whole, however many of them changed.

    slices ─▶ add ─▶ pools in the order in which they came ─▶ take: of each some slices ─▶ Tracker.apply_all

Of a slice that changes again meanwhile only the last state counts.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from dray.api.resource import ResourceSlice
from dray.api.resource.pool import PoolKey, pool_of
from dray.tracker.events import Event, Remove, Upsert
from dray.tracker.tracker import Tracker

SLICES_AT_ONCE: Final = 3000
"""What is taken in one turn of an event loop, counted in devices that changed: two to three microseconds each."""
OF_SLICE: Final = 40
"""A slice takes as long as so many devices, besides its own."""
UNCHANGED: Final = 8
"""So many devices of a pool take as long, when it is made anew, as one that changed."""


class GatheredSlices:
    """What happened to slices. A pool of which some are left goes behind the others."""

    def __init__(self, tracker: Tracker) -> None:
        """`tracker` is asked, and is told of nothing here."""
        self._tracker = tracker
        self._pools: OrderedDict[PoolKey, OrderedDict[str, Event]] = OrderedDict()
        self._pool_of: dict[str, PoolKey] = {}

    def __bool__(self) -> bool:
        return bool(self._pools)

    def add(self, event: Event) -> None:
        """A slice came, changed or went."""
        key: PoolKey | None
        if isinstance(event, Remove):
            name = event.name
            key = self._pool_of.get(name) or self._tracker.pool_of_slice(name)
        else:
            assert isinstance(event.object, ResourceSlice)
            name, key = event.object.metadata.name, pool_of(event.object)
        if key is None:
            return  # it was never here
        if self._pool_of.get(name, key) != key:
            self._drop(name)
        self._pools.setdefault(key, OrderedDict())[name] = event
        self._pool_of[name] = key

    def take(self, limit: int = SLICES_AT_ONCE) -> list[Event]:
        """The next slices that may have their turn together, but at least one: of as few pools as may be."""
        taken: list[Event] = []
        of_slices = of_pools = 0
        for _ in range(len(self._pools)):
            key = next(iter(self._pools))
            view = self._tracker.pool(*key)
            of_pools += 0 if view is None else len(view.devices) // UNCHANGED
            if taken and of_slices + of_pools > limit:
                break
            events = self._pools.pop(key)
            while events and (of_slices < limit or not taken):
                name, event = events.popitem(last=False)
                del self._pool_of[name]
                taken.append(event)
                of_slices += OF_SLICE + _size(event)
            if events:
                self._pools[key] = events
                break
        return taken

    def _drop(self, name: str) -> None:
        key = self._pool_of.pop(name)
        events = self._pools[key]
        del events[name]
        if not events:
            del self._pools[key]


def _size(event: Event) -> int:
    if isinstance(event, Upsert) and isinstance(event.object, ResourceSlice):
        return len(event.object.spec.devices)
    return 0
