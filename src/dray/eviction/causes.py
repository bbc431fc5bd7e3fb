"""The taints that drive pods off a claim's devices, and since when.

What counts is what the allocation snapshot says the claim tolerates (SVS-16), or the claim's request if it has none.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import msgspec

from dray.api.resource import (
    DeviceRequestAllocationResult,
    DeviceTaint,
    DeviceTaintRule,
    DeviceToleration,
    ResourceClaim,
)
from dray.api.resource.claim import request_parts
from dray.api.resource.taint import DEFAULT_EVICTIONS_PER_SECOND, EFFECT_NO_EXECUTE
from dray.api.resource.toleration import eviction_time
from dray.api.times import Time
from dray.tracker import DeviceId, TrackedTaint

TaintKey: TypeAlias = int | str
"""What evictions for one taint have in common: the uid of its rule, the tracked id of a driver's taint, or what
`node_rations` says for a node taint."""


class Source(NamedTuple):
    """What somebody can confirm. What is too much is judged by group: all pools of a driver, all nodes with a taint."""

    group: str
    """The uid of a rule, a driver, or a taint of nodes."""
    place: str = ""
    """The driver's pool, or the node."""


class Cause(msgspec.Struct, frozen=True, gc=False):
    """A taint that a pod must leave for: from when on, how fast, and by which rule."""

    taint: TaintKey
    """Evictions with the same key share a limiter."""
    due: float
    """Seconds since 1970; of a node taint, of a clock that never jumps."""
    rate: int | None
    """Evictions per second; None if there is no limit."""
    rule: str | None = None
    key: str = ""
    value: str = ""
    source: Source = Source("")


Causes: TypeAlias = Mapping[TaintKey, Cause]
TaintsOf: TypeAlias = Callable[[DeviceId], Iterable[TrackedTaint]]
"""The taints on an allocated device, whether it is published or not."""
KeyOf: TypeAlias = Callable[[TrackedTaint], TaintKey]


class Hit(NamedTuple):
    """One device of a claim, a taint on it, and the cause that this is for pods to leave."""

    device: DeviceId
    taint: TrackedTaint
    cause: Cause


def find_hits(claim: ResourceClaim, taints_of: TaintsOf, key_of: KeyOf) -> Iterator[Hit]:
    """The taints on devices of a claim that it does not tolerate, or not for long, device by device."""
    allocation = claim.status.allocation
    for result in allocation.devices.results if allocation is not None else ():
        device = DeviceId(result.driver, result.pool, result.device)
        for taint in taints_of(device):
            if taint.effect != EFFECT_NO_EXECUTE:
                continue
            cause = _cause(taint, key_of(taint), tolerations_of(claim, result), device)
            if cause is not None:
                yield Hit(device, taint, cause)


def find_causes(claim: ResourceClaim, taints_of: TaintsOf, key_of: KeyOf) -> dict[TaintKey, Cause]:
    """The causes for which pods must leave a claim, by taint. Of several devices the first to be left counts."""
    return earliest(hit.cause for hit in find_hits(claim, taints_of, key_of))


def earliest(causes: Iterable[Cause]) -> dict[TaintKey, Cause]:
    """Of the causes of one taint the one that is due first."""
    first: dict[TaintKey, Cause] = {}
    for cause in causes:
        known = first.get(cause.taint)
        first[cause.taint] = cause if known is None or cause.due < known.due else known
    return first


def _cause(
    tracked: TrackedTaint, key: TaintKey, tolerations: tuple[DeviceToleration, ...], device: DeviceId
) -> Cause | None:
    taint = tracked.taint
    moment = eviction_time(tolerations, taint, added_at(taint))
    if moment is None:
        return None
    rate = taint.evictions_per_second or DEFAULT_EVICTIONS_PER_SECOND
    source = (device.driver, device.pool) if tracked.rule is None else (str(key), "")
    return _shared_cause(key, moment.timestamp(), rate, tracked.rule, (taint.key, taint.value), source)


@lru_cache(maxsize=1024)
def _shared_cause(
    taint: TaintKey, due: float, rate: int, rule: str | None, of: tuple[str, str], source: tuple[str, str]
) -> Cause:
    """One and the same for the many claims that a taint hits: cheap to make, to hold and to compare."""
    return Cause(taint, due, rate, rule, *of, Source(*source))


def names_device(rule: DeviceTaintRule, device: DeviceId) -> bool:
    """Whether a rule selects a device by its names alone, so that it need not be published (SVS-23)."""
    selector = rule.spec.device_selector
    if selector is None or selector.selectors or selector.device_class_name is not None:
        return False
    return all(
        wanted is None or wanted == actual
        for wanted, actual in zip((selector.driver, selector.pool, selector.device), device, strict=True)
    )


def added_at(taint: DeviceTaint) -> dt.datetime:
    """When a taint was added. Servers fill the time in; data without it counts as added long ago."""
    return _LONG_AGO if taint.time_added is None else _moment(taint.time_added)


_LONG_AGO = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_moment = lru_cache(maxsize=1024)(Time.datetime)


def tolerations_of(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> tuple[DeviceToleration, ...]:
    """What an allocated device's request tolerates."""
    if result.tolerations:
        return result.tolerations
    name, sub = request_parts(result.request)
    for request in claim.spec.devices.requests:
        if request.name != name:
            continue
        if request.exactly is not None:
            return request.exactly.tolerations
        for alternative in request.first_available:
            if alternative.name == sub:
                return alternative.tolerations
    return ()
