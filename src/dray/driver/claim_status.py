"""What a driver says of the devices of a claim, as `status.devices` has it. Pure: entries in, entries out.

An entry of this driver has two conditions: `Ready` (the device is set up as the claim wants it) and, if the driver
reports health, `Healthy`. Others write to the same list, and conditions of their own into the same entries
(binding conditions); what is not this driver's word stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from dray.api.conditions import with_conditions
from dray.api.meta import Condition
from dray.api.resource.claim import (
    AllocatedDeviceStatus,
    DeviceRequestAllocationResult,
    NetworkDeviceData,
    ResourceClaimStatus,
)
from dray.api.times import Time
from dray.api.visible import visible
from dray.driver.checkpoint import Prepared
from dray.driver.driver import Health

READY: Final = "Ready"
HEALTHY: Final = "Healthy"

DeviceKey: TypeAlias = tuple[str, str, str]
"""Pool, device and share (empty without one): a device of this driver within a claim."""

HealthOf: TypeAlias = Callable[[str, str], Health | None]
"""The health of a device, by pool and name; None if nothing is known."""

_HEALTH: Final = {True: ("True", "Healthy"), False: ("False", "Unhealthy"), None: ("Unknown", "Unknown")}


class Word(msgspec.Struct, frozen=True):
    """What the driver has to say of one prepared device. `conditions` have no times yet."""

    conditions: tuple[Condition, ...]
    data: Any = None
    network_data: NetworkDeviceData | None = None


def words(devices: Iterable[Prepared], health_of: HealthOf | None) -> dict[DeviceKey, Word]:
    """What there is to say of the devices of a claim: nothing of those without health, data or addresses."""
    found: dict[DeviceKey, Word] = {}
    for device in devices:
        if health_of is None and device.data is None and device.network_data is None:
            continue
        conditions = [Condition(type=READY, status="True", reason="Prepared")]
        if health_of is not None:
            conditions.append(_health_condition(health_of(device.pool, device.device)))
        word = Word(tuple(conditions), device.data, device.network_data)
        found.setdefault((device.pool, device.device, device.share_id), word)
    return found


def merge(
    status: ResourceClaimStatus, driver: str, spoken: dict[DeviceKey, Word], now: Time
) -> tuple[AllocatedDeviceStatus, ...]:
    """The entries as they should be; equal to those of `status` if there is nothing new.

    Only devices that the claim (still) has can have an entry. A condition whose status is the same keeps its time.
    """
    results = status.allocation.devices.results if status.allocation is not None else ()
    allocated = {_key(result) for result in results if result.driver == driver}
    wanted = {key: word for key, word in spoken.items() if key in allocated}
    merged = []
    for entry in status.devices:
        word = wanted.pop(_key(entry), None) if entry.driver == driver else None
        merged.append(entry if word is None else _with(entry, word, now))
    for (pool, device, share), word in wanted.items():
        new = AllocatedDeviceStatus(driver=driver, pool=pool, device=device, share_id=share or None)
        merged.append(_with(new, word, now))
    return tuple(merged)


def _health_condition(health: Health | None) -> Condition:
    status, reason = _HEALTH[health.healthy if health is not None else None]
    return Condition(
        type=HEALTHY, status=status, reason=reason, message=visible(health.message) if health is not None else ""
    )


def _with(entry: AllocatedDeviceStatus, word: Word, now: Time) -> AllocatedDeviceStatus:
    own = (replace(condition, last_transition_time=now) for condition in word.conditions)
    return replace(
        entry,
        conditions=with_conditions(entry.conditions, own),
        data=entry.data if word.data is None else word.data,
        network_data=entry.network_data if word.network_data is None else word.network_data,
    )


def _key(device: AllocatedDeviceStatus | DeviceRequestAllocationResult) -> DeviceKey:
    return device.pool, device.device, device.share_id or ""
