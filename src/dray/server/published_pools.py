"""The devices that are published now, by pool, read from the store when asked."""

from __future__ import annotations

from collections.abc import Mapping

from dray.api.registry import by_kind
from dray.api.resource import ResourceSlice
from dray.api.resource.slice import Device
from dray.server.followed import Followed
from dray.store import Key, Store

SLICES = by_kind("resource.k8s.io/v1", "ResourceSlice")

PoolKey = tuple[str, str]
"""Driver and pool."""

CounterKey = tuple[str, str]
"""Counter set and counter."""


class PublishedPool:
    """What the slices of a pool's highest generation say, whether all of them are there or not."""

    def __init__(self, slices: Mapping[Key, ResourceSlice]) -> None:
        newest = max(each.spec.pool.generation for each in slices.values())
        current = [each.spec for each in slices.values() if each.spec.pool.generation == newest]
        self.devices: Mapping[str, Device] = {device.name: device for spec in current for device in spec.devices}
        self.counters: Mapping[CounterKey, int] = {
            (group.name, name): counter.value.nanos
            for spec in current
            for group in spec.shared_counters
            for name, counter in group.counters.items()
        }


class PublishedPools:
    """All pools. A pool is put together when it is first asked for after a change."""

    def __init__(self, store: Store) -> None:
        self._followed = Followed(store, SLICES.resource, self._apply)
        self._pool_of: dict[Key, PoolKey] = {}
        self._slices: dict[PoolKey, dict[Key, ResourceSlice]] = {}
        self._pools: dict[PoolKey, PublishedPool] = {}

    def find(self, key: PoolKey) -> PublishedPool | None:
        """A pool as it is stored now; None if it is not published."""
        self._followed.catch_up()
        pool = self._pools.get(key)
        if pool is None and key in self._slices:
            pool = self._pools[key] = PublishedPool(self._slices[key])
        return pool

    def close(self) -> None:
        """Lets go of the store."""
        self._followed.close()

    def _apply(self, key: Key, found: ResourceSlice | None) -> None:
        before = self._pool_of.pop(key, None)
        if before is not None:
            self._pools.pop(before, None)
            slices = self._slices[before]
            del slices[key]
            if not slices:
                del self._slices[before]
        if found is not None:
            pool = (found.spec.driver, found.spec.pool.name)
            self._pools.pop(pool, None)
            self._pool_of[key] = pool
            self._slices.setdefault(pool, {})[key] = found
