"""What is wrong with the devices that a claim has, or would get: gone, or tainted so that its pods have to leave."""

from __future__ import annotations

from collections.abc import Iterator

from dray.api.resource import ResourceClaim
from dray.api.resource.taint import EFFECT_NO_EXECUTE
from dray.api.resource.toleration import is_tolerated, tolerates, toleration_seconds
from dray.api.taints import taint_text
from dray.eviction.causes import tolerations_of
from dray.snapshot.outcome import Outcome
from dray.snapshot.snapshot import Snapshot
from dray.tracker import DeviceId


def tell_troubles(snapshot: Snapshot, claim: ResourceClaim) -> Iterator[str]:
    """Devices of an allocation that nobody publishes any more, and taints that the claim does not tolerate for good."""
    published = {device.id: device for device in snapshot.devices()}
    allocation = claim.status.allocation
    for result in allocation.devices.results if allocation is not None and published else ():
        name = f"{result.pool}/{result.device}"
        device = published.get(DeviceId(result.driver, result.pool, result.device))
        if device is None:
            yield f"{name} is in no slice any more: its driver has taken it away."
            continue
        tolerations = tolerations_of(claim, result)
        for tracked in device.taints:
            source = f"rule {tracked.rule}" if tracked.rule else "its driver"
            told = f"{name} is tainted {taint_text(tracked.taint)} by {source}"
            matching = [toleration_seconds(one) for one in tolerations if tolerates(one, tracked.taint)]
            ends = [seconds for seconds in matching if seconds is not None]
            if not is_tolerated(tolerations, tracked.taint):
                yield f"{told}, which the claim does not tolerate."
            elif tracked.taint.effect == EFFECT_NO_EXECUTE and ends and None not in matching:
                told = f"{told}, which the claim tolerates for {min(ends)} s"
                yield f"{told}: pods that use it are evicted that long after the taint was added."


def tell_short_stays(snapshot: Snapshot, outcome: Outcome) -> list[str]:
    """Why pods would not keep the devices that an allocation gives them, a sentence each."""
    if outcome.status != "allocated":
        return []
    after = snapshot.with_allocations(outcome)
    claims = [after.claim(name) for name in outcome.allocations]
    return [told for claim in claims if _tolerates_for_a_time(claim) for told in tell_troubles(after, claim)]


def _tolerates_for_a_time(claim: ResourceClaim) -> bool:
    """Of all others an allocator gives no device that its pods would not keep."""
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation is not None else ()
    return any(toleration_seconds(one) is not None for result in results for one in tolerations_of(claim, result))
