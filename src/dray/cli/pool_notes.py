"""What no row of a table of devices shows: those that are held and that nobody publishes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from dray.eviction.allocations import devices_of
from dray.prose.wording import names

if TYPE_CHECKING:
    from dray.api.resource import ResourceClaim
    from dray.scheduling.device_states import DeviceState


def tell_unpublished(claims: Iterable[ResourceClaim], devices: Iterable[DeviceState]) -> Iterator[str]:
    """Devices that claims hold and no slice has: their driver has taken them away, or its slices are gone."""
    published = {row.device.id for row in devices}
    held = {device: None for claim in claims for device in devices_of(claim) if device not in published}
    if held:
        told = names(sorted(f"{one.pool}/{one.device} ({one.driver})" for one in held), 4)
        yield f"Held by claims, and in no slice any more: {told}"
