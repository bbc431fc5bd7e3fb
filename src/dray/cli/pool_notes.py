"""What no row of a table of devices or nodes shows: pools that cannot be used, and devices that nobody publishes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from dray.eviction.allocations import devices_of
from dray.prose.wording import names

if TYPE_CHECKING:
    from dray.api.resource import ResourceClaim
    from dray.scheduling.device_states import DeviceState
    from dray.tracker import PoolView


def bad_pools(pools: Iterable[PoolView], node: str = "") -> list[PoolView]:
    """Those that cannot be used now; of a node, or of no single one, if a node is given."""
    return [one for one in pools if one.problem is not None and (not node or one.node in ("", node))]


def tell_bad_pools(pools: Iterable[PoolView]) -> Iterator[str]:
    """`Pool gpu.example.com/node-1 is incomplete: 1 of 2 slices of generation 1 are there; its devices do not count`"""
    for problem in (pool.problem or "" for pool in pools):
        yield f"{problem[:1].upper()}{problem[1:]}; its devices do not count"


def tell_unpublished(claims: Iterable[ResourceClaim], devices: Iterable[DeviceState]) -> Iterator[str]:
    """Devices that claims hold and no slice has: their driver has taken them away, or its slices are gone."""
    published = {row.device.id for row in devices}
    held = {device: None for claim in claims for device in devices_of(claim) if device not in published}
    if held:
        told = names(sorted(f"{one.pool}/{one.device} ({one.driver})" for one in held), 4)
        yield f"Held by claims, and in no slice any more: {told}"
