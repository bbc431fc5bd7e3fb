"""Whether allocated devices are ready for a pod: some must be attached first, and their drivers say when they are."""

from __future__ import annotations

from dray.api.resource import DeviceRequestAllocationResult, ResourceClaim
from dray.scheduling.reasons import DeviceFailed, DeviceUnready


def find_unready(claim: ResourceClaim) -> DeviceUnready | DeviceFailed | None:
    """The first device of an allocated claim that is not ready; None if the claim can be used."""
    allocation = claim.status.allocation
    for result in allocation.devices.results if allocation is not None else ():
        if result.binding_conditions:
            unready = _judge(claim, result)
            if unready is not None:
                return unready
    return None


def _judge(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> DeviceUnready | DeviceFailed | None:
    true = {
        condition.type: condition
        for status in claim.status.devices
        if (status.driver, status.pool, status.device, status.share_id)
        == (result.driver, result.pool, result.device, result.share_id)
        for condition in status.conditions
        if condition.status == "True"
    }
    device = f"{result.driver}/{result.pool}/{result.device}"
    for name in result.binding_failure_conditions:
        if name in true:
            why = f"{true[name].reason} {true[name].message}".strip()
            return DeviceFailed(claim.metadata.name, device, name, why)
    missing = tuple(name for name in result.binding_conditions if name not in true)
    return DeviceUnready(claim.metadata.name, device, missing) if missing else None
