"""What is different for claims: allocated ones whose devices changed, and pending ones that fit now, or no longer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from dray.allocator import claim_key
from dray.allocator.reasons import Report
from dray.api.resource import DeviceToleration, ResourceClaim
from dray.api.resource.toleration import is_tolerated
from dray.eviction.causes import tolerations_of
from dray.snapshot.device_changes import DeviceChange, Inspection, new_taints, tell_taint
from dray.snapshot.snapshot import Snapshot
from dray.tracker import DeviceId, EffectiveDevice

MAX_PENDING = 200


class ClaimChange(Report, frozen=True, kw_only=True):
    """An allocated claim with a device that is not what it was. It stays allocated (4381-101, 4381-102)."""

    claim: str
    device: str
    reasons: tuple[str, ...]
    gone: bool = False
    """The device is not published any more."""
    pods: tuple[str, ...] = ()


class PendingChange(Report, frozen=True, kw_only=True):
    """A claim without devices, whose chances are others than before."""

    claim: str
    fits: bool
    node: str | None = None
    fitted_before: bool | None = None
    """Absent for a new claim."""
    message: str = ""


class Chance(NamedTuple):
    """Whether a pending claim fits now, and where."""

    fits: bool
    node: str | None
    message: str


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
            gone = device in old and device not in new
            reasons = _reasons(old.get(device), new.get(device), tolerations_of(claim, result))
            if gone or reasons:
                yield ClaimChange(
                    claim=claim_key(claim),
                    device=str(device),
                    reasons=("no longer published",) if gone else reasons,
                    gone=gone,
                    pods=tuple(f"{claim.metadata.namespace}/{used.name}" for used in claim.status.reserved_for),
                )


def assess_pending(snapshot: Snapshot) -> dict[str, Chance]:
    """Each pending claim by itself, MAX_PENDING of them at most."""
    chances: dict[str, Chance] = {}
    for name in snapshot.pending()[:MAX_PENDING]:
        outcome = snapshot.allocate(name)
        chances[name] = Chance(outcome.status == "allocated", outcome.node, outcome.message)
    return chances


def compare_pending(before: Mapping[str, Chance], after: Mapping[str, Chance]) -> Iterator[PendingChange]:
    """Claims that fit now, no longer fit, or are new."""
    for name, chance in after.items():
        fitted = before[name].fits if name in before else None
        if fitted != chance.fits:
            yield PendingChange(
                claim=name, fits=chance.fits, node=chance.node, fitted_before=fitted, message=chance.message
            )


def _only(inspection: Inspection, wanted: set[DeviceId]) -> dict[DeviceId, EffectiveDevice]:
    return {device: seen.device for (device, _), seen in inspection.devices.items() if device in wanted}


def _reasons(
    old: EffectiveDevice | None, new: EffectiveDevice | None, tolerations: tuple[DeviceToleration, ...]
) -> tuple[str, ...]:
    if new is None:
        return ()
    return tuple(tell_taint(taint) for taint in new_taints(old, new) if not is_tolerated(tolerations, taint.taint))
