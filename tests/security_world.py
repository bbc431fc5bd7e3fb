"""What the tests of `dray.server.security` stand on: a clock that stands still, and objects to look up."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

from dray.api.meta import Object
from dray.api.resource import ResourceSlice

NOW = dt.datetime(2026, 6, 1, 12, 0, 0, tzinfo=dt.UTC)


class FakeClock:
    """Seconds since the epoch, moved by hand."""

    def __init__(self) -> None:
        self.time = NOW.timestamp()

    def __call__(self) -> float:
        return self.time


class Objects:
    """Stored objects of the core group by (resource, namespace, name)."""

    def __init__(self) -> None:
        self.stored: dict[tuple[str, str, str], Object] = {}

    def add(self, resource: str, obj: Object) -> None:
        self.stored[resource, obj.metadata.namespace, obj.metadata.name] = obj

    def __call__(self, resource: str, namespace: str, name: str) -> Object | None:
        return self.stored.get((resource, namespace, name))

    def slices(self, driver: str, pool: str) -> Iterable[ResourceSlice]:
        """The slices of a pool."""
        slices = [obj for obj in self.stored.values() if isinstance(obj, ResourceSlice)]
        return [each for each in slices if (each.spec.driver, each.spec.pool.name) == (driver, pool)]
