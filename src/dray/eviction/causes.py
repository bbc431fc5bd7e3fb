"""The taints that drive pods off a claim's devices, and since when.

What counts is what the allocation snapshot says the claim tolerates (SVS-16), or the claim's request if it has none.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator

import msgspec

from dray.api.resource import (
    DeviceRequestAllocationResult,
    DeviceTaint,
    DeviceTaintRule,
    DeviceToleration,
    ResourceClaim,
)
from dray.api.resource.taint import DEFAULT_EVICTIONS_PER_SECOND, EFFECT_NO_EXECUTE
from dray.api.resource.toleration import eviction_time
from dray.tracker import DeviceId, TrackedTaint

TaintsOf = Callable[[DeviceId], tuple[TrackedTaint, ...] | None]
"""The taints on a published device, None if no such device is published."""


class Cause(msgspec.Struct, frozen=True):
    """A taint that a pod must leave for: from when on, how fast, and by which rule."""

    taint: int
    """The tracked id: evictions for one taint share a limiter."""
    due: float
    """Seconds since 1970."""
    rate: int
    rule: str | None = None


def find_causes(
    claim: ResourceClaim,
    taints_of: TaintsOf,
    rules: Iterable[DeviceTaintRule] = (),
    rule_ids: dict[str, int] | None = None,
) -> dict[int, Cause]:
    """The causes for which pods must leave a claim, by taint.

    `rules` are those that name devices: they also reach allocated devices that are no longer published (SVS-23);
    `rule_ids` has the ids of their taints.
    """
    allocation = claim.status.allocation
    if allocation is None:
        return {}
    causes: dict[int, Cause] = {}
    for result in allocation.devices.results:
        tolerations = tolerations_of(claim, result)
        for taint in _taints(result, taints_of, rules, rule_ids or {}):
            cause = _cause(taint, tolerations)
            if cause is not None:
                known = causes.get(cause.taint)
                causes[cause.taint] = cause if known is None or cause.due < known.due else known
    return causes


def _taints(
    result: DeviceRequestAllocationResult, taints_of: TaintsOf, rules: Iterable[DeviceTaintRule], ids: dict[str, int]
) -> Iterator[TrackedTaint]:
    device = DeviceId(result.driver, result.pool, result.device)
    published = taints_of(device)
    if published is not None:
        yield from published
        return
    for rule in rules:
        if names_device(rule, device):
            yield TrackedTaint(ids.get(rule.metadata.name, -1), rule.spec.taint, rule.metadata.name)


def names_device(rule: DeviceTaintRule, device: DeviceId) -> bool:
    """Whether a rule selects a device by its names alone, so that it need not be published."""
    selector = rule.spec.device_selector
    if selector is None or selector.selectors or selector.device_class_name is not None:
        return False
    return all(
        wanted is None or wanted == actual
        for wanted, actual in zip((selector.driver, selector.pool, selector.device), device, strict=True)
    )


def _cause(tracked: TrackedTaint, tolerations: tuple[DeviceToleration, ...]) -> Cause | None:
    if tracked.effect != EFFECT_NO_EXECUTE:
        return None
    moment = eviction_time(tolerations, tracked.taint, added_at(tracked.taint))
    if moment is None:
        return None
    rate = tracked.taint.evictions_per_second or DEFAULT_EVICTIONS_PER_SECOND
    return Cause(tracked.id, moment.timestamp(), rate, tracked.rule)


def added_at(taint: DeviceTaint) -> dt.datetime:
    """When a taint was added. Servers fill the time in; data without it counts as added long ago."""
    return taint.time_added.datetime() if taint.time_added is not None else dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def tolerations_of(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> tuple[DeviceToleration, ...]:
    """What an allocated device's request tolerates."""
    if result.tolerations:
        return result.tolerations
    name, _, sub = result.request.partition("/")
    for request in claim.spec.devices.requests:
        if request.name != name:
            continue
        if request.exactly is not None:
            return request.exactly.tolerations
        for alternative in request.first_available:
            if alternative.name == sub:
                return alternative.tolerations
    return ()
