"""Whether allocated devices are ready for a pod: some must be attached first, and their drivers say when they are."""

from __future__ import annotations

import msgspec

from dray.api.resource import DeviceRequestAllocationResult, ResourceClaim


class Unready(msgspec.Struct, frozen=True):
    """A device that a pod has to wait for, or that cannot be had (`has_failed`)."""

    message: str
    has_failed: bool = False


def find_unready(claim: ResourceClaim) -> Unready | None:
    """The first device of an allocated claim that is not ready; None if the claim can be used."""
    allocation = claim.status.allocation
    for result in allocation.devices.results if allocation is not None else ():
        if result.binding_conditions:
            unready = _judge(claim, result)
            if unready is not None:
                return unready
    return None


def _judge(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> Unready | None:
    true = {
        condition.type: condition
        for status in claim.status.devices
        if (status.driver, status.pool, status.device, status.share_id)
        == (result.driver, result.pool, result.device, result.share_id)
        for condition in status.conditions
        if condition.status == "True"
    }
    device = f"device {result.driver}/{result.pool}/{result.device}"
    claim_name = f'resourceclaim "{claim.metadata.name}"'
    for name in result.binding_failure_conditions:
        if name in true:
            why = f"{true[name].reason} {true[name].message}".strip()
            return Unready(f"{claim_name}: {device} could not be made ready: {name}: {why}", has_failed=True)
    missing = [name for name in result.binding_conditions if name not in true]
    return Unready(f"{claim_name}: {device} is not ready: waiting for {', '.join(missing)}") if missing else None
