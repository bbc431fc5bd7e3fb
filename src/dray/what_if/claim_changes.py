"""What is different for allocated claims: devices that are gone, got taints, or can no longer be reached."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dray.allocator.reasons import Report
from dray.api.references import full_name
from dray.api.resource import DeviceToleration, ResourceClaim
from dray.api.resource.toleration import is_tolerated
from dray.eviction.causes import tolerations_of
from dray.tracker import DeviceId
from dray.what_if.device_changes import DeviceChange, Inspection, JudgedDevice, new_taints, tell_taint


class ClaimChange(Report, frozen=True, kw_only=True):
    """An allocated claim with a device that is not what it was. It stays allocated (4381-101, 4381-102)."""

    claim: str
    device: str
    reasons: tuple[str, ...]
    gone: bool = False
    """The device is not published any more."""
    pods: tuple[str, ...] = ()


def compare_claims(
    claims: Iterable[ResourceClaim], before: Inspection, after: Inspection, changes: Iterable[DeviceChange]
) -> Iterator[ClaimChange]:
    """Allocated claims on devices that are gone, or got taints that the claim does not tolerate."""
    touched = {DeviceId(change.driver, change.pool, change.device) for change in changes}
    if not touched:
        return
    old = _only(before, touched)
    new = _only(after, touched)
    for claim in claims:
        allocation = claim.status.allocation
        for result in allocation.devices.results if allocation is not None else ():
            device = DeviceId(result.driver, result.pool, result.device)
            if device not in touched:
                continue
            was, is_ = old.get(device), new.get(device)
            gone = was is not None and is_ is None
            reasons = _reasons(was, is_, tolerations_of(claim, result))
            if gone or reasons:
                yield ClaimChange(
                    claim=full_name(claim),
                    device=str(device),
                    reasons=("no longer published",) if gone else reasons,
                    gone=gone,
                    pods=tuple(f"{claim.metadata.namespace}/{used.name}" for used in claim.status.reserved_for),
                )


def _only(inspection: Inspection, wanted: set[DeviceId]) -> dict[DeviceId, JudgedDevice]:
    return {device: seen for (device, _), seen in inspection.devices.items() if device in wanted}


def _reasons(
    old: JudgedDevice | None, new: JudgedDevice | None, tolerations: tuple[DeviceToleration, ...]
) -> tuple[str, ...]:
    if new is None:
        return ()
    added = new_taints(old.device if old is not None else None, new.device)
    told = [tell_taint(taint) for taint in added if not is_tolerated(tolerations, taint.taint)]
    if new.node_problem is not None and (old is None or old.node_problem != new.node_problem):
        told.append(new.node_problem)
    return tuple(told)
