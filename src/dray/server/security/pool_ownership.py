"""Whose pool it is: a node, and a driver that runs on it, publish only into pools of that node.

Pools are known by driver and name alone, whichever node their slices are of: a slice of one node in the pool of another
would speak for its devices. Drivers name the pool of a node after the node, so that name is kept for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dray.api.meta import Object
from dray.api.resource import ResourceSlice
from dray.server.security.tokens import ObjectLookup

SlicesInPool = Callable[[str, str], Iterable[ResourceSlice]]
"""The stored slices of a pool, by driver and pool name."""


def check_pool(
    node: str, old: Object | None, new: Object | None, slices_in_pool: SlicesInPool, lookup: ObjectLookup
) -> str | None:
    """Why a slice of a node may not be put into its pool; None if it may.

    A slice that is there may stay in its pool, and be deleted.
    """
    if not isinstance(new, ResourceSlice):
        return None
    driver, pool = new.spec.driver, new.spec.pool.name
    if pool == node or (isinstance(old, ResourceSlice) and (old.spec.driver, old.spec.pool.name) == (driver, pool)):
        return None
    if lookup("nodes", "", pool) is not None:
        return f'node "{node}" cannot publish into pool "{pool}" of driver {driver}, which has the name of another node'
    for other in slices_in_pool(driver, pool):
        if other.spec.node_name != node:
            whose = f'of node "{other.spec.node_name}"' if other.spec.node_name else "for several nodes"
            return (
                f'node "{node}" cannot publish into pool "{pool}" of driver {driver}: '
                f'ResourceSlice "{other.metadata.name}" in it is {whose}. Name the pool after the node'
            )
    return None
