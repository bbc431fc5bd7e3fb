"""The configuration that goes with an allocation: the classes' first, then the claim's (4381-66, 4381-68, 4381-94).

Configuration never decides which devices are chosen (4381-99); it is copied as it is at this moment (4381-100).
"""

from __future__ import annotations

from collections.abc import Sequence

from dray.allocator.requests import Alternative
from dray.api.resource import (
    DeviceAllocationConfiguration,
    DeviceClaimConfiguration,
    DeviceClass,
)
from dray.api.resource.claim import SOURCE_CLAIM, SOURCE_CLASS


def merge_config(
    chosen: Sequence[tuple[str, Alternative]], of_claim: Sequence[DeviceClaimConfiguration]
) -> tuple[DeviceAllocationConfiguration, ...]:
    """Configuration for the chosen alternatives, which come with the names of their requests.

    Each class counts once, for all requests that use it. Configuration for other requests or alternatives is left out.
    An entry that covers every request says so by naming none.
    """
    users: dict[str, tuple[DeviceClass, list[str]]] = {}
    for _, alternative in chosen:
        device_class = alternative.device_class
        users.setdefault(device_class.metadata.name, (device_class, []))[1].append(alternative.name)
    merged = [
        DeviceAllocationConfiguration(source=SOURCE_CLASS, requests=_unless_all(names, chosen), opaque=entry.opaque)
        for device_class, names in users.values()
        for entry in device_class.spec.config
    ]
    for config in of_claim:
        if not config.requests or _covers_any(config.requests, chosen):
            requests = _unless_all(config.requests, chosen)
            merged.append(DeviceAllocationConfiguration(source=SOURCE_CLAIM, requests=requests, opaque=config.opaque))
    return tuple(merged)


def _covers_any(names: Sequence[str], chosen: Sequence[tuple[str, Alternative]]) -> bool:
    return any(request in names or alternative.name in names for request, alternative in chosen)


def _unless_all(names: Sequence[str], chosen: Sequence[tuple[str, Alternative]]) -> tuple[str, ...]:
    """The names, or none if they cover every request of the claim."""
    covers_all = all(request in names or alternative.name in names for request, alternative in chosen)
    return () if covers_all else tuple(names)
