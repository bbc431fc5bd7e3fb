"""What tells pools of devices apart."""

from __future__ import annotations

from typing import TypeAlias

from dray.api.resource.slice import ResourceSlice

PoolKey: TypeAlias = tuple[str, str]
"""Driver and name of a pool. A plain tuple: every event of every slice and claim makes some."""


def pool_of(obj: ResourceSlice) -> PoolKey:
    """The pool that a slice belongs to."""
    return obj.spec.driver, obj.spec.pool.name
