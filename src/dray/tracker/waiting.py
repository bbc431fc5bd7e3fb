"""Slices that have to be looked at again, and whose turn it is: a rule may concern all of a large cluster.

    rules, patches ─▶ slices ─▶ add ─▶ pools in the order in which they came ─▶ take: some of them ─▶ patched, tainted

A pool is looked at as a whole, so that its view is the old or the new one, and none in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from dray.api.resource.pool import PoolKey
from dray.tracker.pool_table import PoolTable

AT_ONCE: Final = 1000
"""Devices that followers on an event loop look at in one turn: two to four milliseconds."""
LEAST: Final = 8
"""A pool with fewer devices takes as long as one with so many."""


class Waiting:
    """Slices to patch and to taint, and the pools that these are in."""

    def __init__(self, pools: PoolTable) -> None:
        self._pools = pools
        self._keys: dict[PoolKey, None] = {}
        self._to_patch: set[str] = set()
        self._to_taint: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._keys)

    def add_to_patch(self, slices: Mapping[str, None]) -> None:
        """These have to be patched, and then tainted."""
        self._to_patch.update(slices)
        self.add_to_taint(slices)

    def add_to_taint(self, slices: Mapping[str, None]) -> None:
        """These have to be tainted."""
        self._to_taint.update(slices)
        self._keys.update(self._pools.keys_of(slices))

    def drop(self, slice_name: str) -> None:
        """A slice is gone, or counts no longer. Its pool is to be taken by its key."""
        self._to_patch.discard(slice_name)
        self._to_taint.discard(slice_name)

    def take(self, limit: int | None) -> list[PoolKey]:
        """The next pools that have up to so many devices together, but at least one; all without a limit."""
        taken: list[PoolKey] = []
        spent = 0
        for key in self._keys if limit != 0 else ():
            spent += max(LEAST, self._pools.size(key))
            if taken and limit is not None and spent > limit:
                break
            taken.append(key)
        self.take_pools(taken)
        return taken

    def take_pools(self, keys: Iterable[PoolKey]) -> None:
        """It is the turn of these pools."""
        for key in keys:
            self._keys.pop(key, None)

    def take_to_patch(self, key: PoolKey) -> list[str]:
        """The slices of a pool that have to be patched."""
        return _take(self._to_patch, self._pools.names(key))

    def take_to_taint(self, key: PoolKey) -> list[str]:
        """The slices of a pool that have to be tainted."""
        return _take(self._to_taint, self._pools.names(key))


def _take(waiting: set[str], names: Iterable[str]) -> list[str]:
    found = [name for name in names if name in waiting]
    waiting.difference_update(found)
    return found
