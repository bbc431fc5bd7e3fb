"""The devices that are published now, by pool, read from the store when asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dray.api.kinds import SLICES
from dray.api.resource import ResourceSlice
from dray.api.resource.pool import PoolKey, pool_of
from dray.api.resource.slice import Device
from dray.server.indexes.followed import Followed
from dray.store import Key, Store
from dray.tracker.pool_parts import OTHERS, split

CounterKey = tuple[str, str]
"""Counter set and counter."""


class PublishedPool:
    """What the slices of a pool that count say, whether all of them are there or not."""

    def __init__(self, slices: Iterable[ResourceSlice]) -> None:
        current = [each.spec for each in slices]
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
        self._pools: dict[PoolKey, dict[str, PublishedPool]] = {}

    async def read(self) -> None:
        """Reads what is there, a part in each turn of the loop. Raises Closed."""
        await self._followed.read_in_turns()

    def find(self, key: PoolKey, node: str) -> PublishedPool | None:
        """A pool as it is stored now and counts for a node (empty: for several); None if nothing of it does."""
        self._followed.catch_up()
        parts = self._pools.get(key)
        if parts is None and key in self._slices:
            counted = split(self._slices[key].values())
            parts = self._pools[key] = {of: PublishedPool(slices) for of, slices in counted.items()}
        if not parts or len(parts) == 1:
            return next(iter(parts.values()), None) if parts else None
        return parts.get(node) or parts.get(OTHERS)

    def slices(self, driver: str, pool: str) -> Iterable[ResourceSlice]:
        """The slices of a pool that are stored now, of whatever generation."""
        self._followed.catch_up()
        return self._slices.get((driver, pool), {}).values()

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
            pool = pool_of(found)
            self._pools.pop(pool, None)
            self._pool_of[key] = pool
            self._slices.setdefault(pool, {})[key] = found
