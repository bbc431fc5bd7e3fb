"""All pools, and which of them have to be looked at again."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dray.api.resource import ResourceSlice
from dray.api.resource.pool import PoolKey, pool_of
from dray.tracker.columns import ColumnTable, Sheet
from dray.tracker.current_slice import CurrentSlice
from dray.tracker.identity import same_slice
from dray.tracker.pool import Pool
from dray.tracker.taints import TaintHits, TaintIds
from dray.tracker.view import PoolView


class PoolTable:
    """Slices by pool. Changes are noted one by one; `stage` and then `rebuild` make them take effect."""

    def __init__(self, ids: TaintIds, *, with_taints: bool) -> None:
        self.columns = ColumnTable()
        self.views: dict[PoolKey, PoolView] = {}
        self._ids = ids
        self._with_taints = with_taints
        self._pools: dict[PoolKey, Pool] = {}
        self._key_of_slice: dict[str, PoolKey] = {}
        self._staged: dict[PoolKey, None] = {}
        """In the order of events, so that the identities of taints come out the same each time."""

    def slice(self, name: str) -> CurrentSlice:
        """A slice that counts."""
        return self._pools[self._key_of_slice[name]].slice(name)

    def key_of(self, name: str) -> PoolKey | None:
        """The pool of a slice, if it is there."""
        return self._key_of_slice.get(name)

    def keys_of(self, slice_names: Iterable[str]) -> dict[PoolKey, None]:
        """The pools of slices that count, each once, in their order."""
        return dict.fromkeys(map(self._key_of_slice.__getitem__, slice_names))

    def names(self, key: PoolKey) -> Iterable[str]:
        """The slices of a pool that count."""
        return self._pools[key].names()

    def size(self, key: PoolKey) -> int:
        """How many devices a pool shows."""
        view = self.views.get(key)
        return 0 if view is None else len(view.devices)

    @property
    def staged(self) -> Iterable[PoolKey]:
        """The pools of which slices were noted since the last `rebuild`."""
        return self._staged.keys()

    def put(self, slice_: ResourceSlice) -> None:
        """Note a new or changed slice."""
        name, key = slice_.metadata.name, pool_of(slice_)
        old_key = self._key_of_slice.get(name)
        if old_key is not None and old_key != key:
            self.remove(name)
        pool = self._pools.get(key)
        if pool is None:
            pool = self._pools[key] = Pool(*key, self._ids, with_taints=self._with_taints)
        known = pool.slices.get(name)
        if known is None or not same_slice(known, slice_):
            pool.slices[name] = slice_
            self._key_of_slice[name] = key
            self._staged[key] = None

    def remove(self, name: str) -> None:
        """Note that a slice is gone."""
        key = self._key_of_slice.pop(name, None)
        if key is not None:
            del self._pools[key].slices[name]
            self._staged[key] = None

    def stage(self) -> tuple[set[str], set[str]]:
        """Find the slices that count.

        Returns the names of those that no longer do, and of those whose devices may be different now.
        """
        gone: set[str] = set()
        fresh: set[str] = set()
        for key in self._staged:
            staged = self._pools[key].stage(self.columns)
            gone |= staged.gone
            fresh |= staged.fresh
        return gone, fresh

    def rebuild(self, dirty: set[str], taint_hits: Callable[[Sheet], TaintHits]) -> set[PoolKey]:
        """Make the devices of these slices anew. Returns the pools that look different, or are gone."""
        slices: dict[PoolKey, list[str]] = {key: [] for key in self._staged}
        for name in dirty:
            slices.setdefault(self._key_of_slice[name], []).append(name)
        changed = {key for key, names in slices.items() if self._rebuild_pool(key, names, taint_hits)}
        self._staged.clear()
        return changed

    def _rebuild_pool(self, key: PoolKey, names: list[str], taint_hits: Callable[[Sheet], TaintHits]) -> bool:
        pool = self._pools[key]
        if not pool.slices:
            del self._pools[key]
            return self.views.pop(key, None) is not None
        view = pool.rebuild(names, taint_hits, staged=key in self._staged)
        if view is self.views.get(key):
            return False
        self.views[key] = view
        return True
