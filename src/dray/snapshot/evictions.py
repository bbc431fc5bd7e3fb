"""Which pods have to leave because of NoExecute taints, when, and how long the rate makes it take.

    taint ─▶ devices ─▶ claims that hold them ─▶ pods in status.reservedFor ─▶ due: timeAdded + tolerationSeconds
                                                                             expected: after the taint's queue

Every taint has its own queue: the first ten pods leave at once, then `evictionsPerSecond` (5055-90, 5055-91). A pod on
devices with several taints goes by the fastest, so that a slow taint does not hold up another (5055-93).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime, timedelta
from typing import NamedTuple, TypeAlias

import msgspec

from dray.allocator.reasons import Report
from dray.api.generated.core import Pod
from dray.api.resource import DeviceTaintRule, ResourceClaim
from dray.api.resource.claim import DeviceRequestAllocationResult
from dray.api.resource.taint import (
    DEFAULT_EVICTIONS_PER_SECOND,
    EFFECT_NO_EXECUTE,
    DeviceTaint,
    DeviceTaintSelector,
    DeviceToleration,
)
from dray.api.resource.toleration import eviction_time
from dray.api.times import Time
from dray.snapshot.snapshot import Snapshot
from dray.snapshot.world import PODS
from dray.tracker import DeviceId

BURST = 10

PodKey: TypeAlias = tuple[str, str, str]
"""Namespace, name, uid."""


class Eviction(Report, frozen=True, kw_only=True):
    """A pod that has to leave."""

    pod: str
    uid: str = ""
    claims: tuple[str, ...]
    """All claims that are reserved for the pod."""
    devices: tuple[str, ...]
    """Its devices with taints that it does not tolerate, or not for long."""
    causes: tuple[str, ...]
    """The taints, and the rules that they come from."""
    rules: tuple[str, ...] = ()
    due: str
    """When it has to leave."""
    expected: str
    """When it probably leaves, given how many leave before it."""
    node: str = ""
    owner: str = ""
    priority: int | None = None
    fits: bool | None = None
    """Whether its claims fit elsewhere, after those of the pods that leave before it; absent if not tried."""
    fits_on: str | None = None
    why_not: str | None = None


class Forecast(NamedTuple):
    """The pods that have to leave, in the order in which they do, and how many may stay because they tolerate it."""

    evictions: dict[PodKey, Eviction]
    protected: frozenset[PodKey]


class _Cause(NamedTuple):
    """A NoExecute taint; `key` is the same wherever it is on devices."""

    key: str | int
    taint: DeviceTaint
    rule: str | None
    added: datetime


class _Hit(NamedTuple):
    """A device of a pod with a taint, and when that makes the pod leave; None if it tolerates it."""

    cause: _Cause
    device: str
    due: datetime | None


def forecast(snapshot: Snapshot, now: datetime, pretend: Collection[str] = ()) -> Forecast:
    """What NoExecute taints do to pods. Rules to `pretend` count as if their effect were NoExecute, from now on."""
    causes = _Causes(snapshot, now, pretend)
    hits: dict[PodKey, list[_Hit]] = {}
    claims_of: dict[PodKey, list[str]] = {}
    for claim in snapshot.objects(ResourceClaim):
        pods = list(_consumers(snapshot, claim))
        for pod in pods:
            claims_of.setdefault(pod, []).append(f"{claim.metadata.namespace}/{claim.metadata.name}")
        for hit in causes.hits(claim) if pods else ():
            for pod in pods:
                hits.setdefault(pod, []).append(hit)
    leaving = {pod: found for pod, found in hits.items() if any(hit.due is not None for hit in found)}
    expected = _queue(leaving, now)
    evictions = {pod: _eviction(snapshot, pod, found, claims_of[pod], expected[pod]) for pod, found in leaving.items()}
    in_order = dict(sorted(evictions.items(), key=lambda item: (item[1].expected, item[1].pod)))
    return Forecast(in_order, frozenset(hits.keys() - leaving.keys()))


class _Causes:
    """NoExecute taints by device, and rules that go by names, which also hit devices that are gone (SVS-23)."""

    def __init__(self, snapshot: Snapshot, now: datetime, pretend: Collection[str]) -> None:
        self._now = now
        self._by_device: dict[DeviceId, dict[str | int, _Cause]] = {}
        self._by_name: list[tuple[DeviceTaintSelector, _Cause]] = []
        for device in snapshot.devices():
            for tracked in device.taints:
                if tracked.rule is None and tracked.effect == EFFECT_NO_EXECUTE:
                    self._put(device.id, self._cause(tracked.id, tracked.taint, None))
        for rule in snapshot.objects(DeviceTaintRule):
            self._add_rule(snapshot, rule, is_pretended=rule.metadata.name in pretend)

    def _add_rule(self, snapshot: Snapshot, rule: DeviceTaintRule, *, is_pretended: bool) -> None:
        name, taint, selector = rule.metadata.name, rule.spec.taint, rule.spec.device_selector
        if selector is None or not (is_pretended or taint.effect == EFFECT_NO_EXECUTE):
            return
        if taint.effect != EFFECT_NO_EXECUTE:
            taint = msgspec.structs.replace(taint, effect=EFFECT_NO_EXECUTE, time_added=Time.of(self._now))
        cause = self._cause(f"rule {name}", taint, name)
        for device in snapshot.selected_devices(name):
            self._put(device.id, cause)
        if not selector.selectors and selector.device_class_name is None:
            self._by_name.append((selector, cause))

    def _put(self, device: DeviceId, cause: _Cause) -> None:
        self._by_device.setdefault(device, {})[cause.key] = cause

    def _cause(self, key: str | int, taint: DeviceTaint, rule: str | None) -> _Cause:
        added = taint.time_added.datetime() if taint.time_added is not None else self._now
        return _Cause(key, taint, rule, added)

    def hits(self, claim: ResourceClaim) -> Iterator[_Hit]:
        """The tainted devices of a claim."""
        allocation = claim.status.allocation
        for result in allocation.devices.results if allocation is not None else ():
            device = DeviceId(result.driver, result.pool, result.device)
            causes = dict(self._by_device.get(device, {}))
            causes.update((cause.key, cause) for selector, cause in self._by_name if _is_named(selector, device))
            tolerations = tolerations_of(claim, result)
            for cause in causes.values():
                yield _Hit(cause, str(device), eviction_time(tolerations, cause.taint, cause.added))


def _is_named(selector: DeviceTaintSelector, device: DeviceId) -> bool:
    wanted = (selector.driver, selector.pool, selector.device)
    return all(name is None or name == actual for name, actual in zip(wanted, device, strict=True))


def tolerations_of(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> tuple[DeviceToleration, ...]:
    """Those of the time of allocation; of the request, if the allocation says none (SVS-16)."""
    if result.tolerations:
        return result.tolerations
    name, _, alternative = result.request.partition("/")
    for request in claim.spec.devices.requests:
        if request.name != name:
            continue
        if request.exactly is not None:
            return request.exactly.tolerations
        return next((sub.tolerations for sub in request.first_available if sub.name == alternative), ())
    return ()


def _consumers(snapshot: Snapshot, claim: ResourceClaim) -> Iterator[PodKey]:
    """Pods that use a claim, without those that are finished, on their way out, or other pods of the same name."""
    for reference in claim.status.reserved_for:
        if reference.resource != PODS or reference.api_group:
            continue
        pod = snapshot.get(PODS, claim.metadata.namespace, reference.name)
        if isinstance(pod, Pod) and not _is_running(pod, reference.uid):
            continue
        yield (claim.metadata.namespace, reference.name, reference.uid)


def _is_running(pod: Pod, uid: str) -> bool:
    is_same = not uid or not pod.metadata.uid or pod.metadata.uid == uid
    is_over = pod.status.phase in ("Succeeded", "Failed") or pod.metadata.deletion_timestamp is not None
    return is_same and not is_over


def _queue(leaving: dict[PodKey, list[_Hit]], now: datetime) -> dict[PodKey, datetime]:
    """When each pod leaves: the earliest that the queue of one of its taints lets it."""
    queues: dict[str | int, dict[PodKey, datetime]] = {}
    rates: dict[str | int, int] = {}
    for pod, hits in leaving.items():
        for cause, _, due in hits:
            if due is not None:
                queue = queues.setdefault(cause.key, {})
                queue[pod] = min(queue.get(pod, due), due)
                rates[cause.key] = cause.taint.evictions_per_second or DEFAULT_EVICTIONS_PER_SECOND
    expected: dict[PodKey, datetime] = {}
    for key, queue in queues.items():
        in_order = sorted(queue, key=lambda pod: (queue[pod], pod))
        for pod, moment in zip(in_order, _pace([queue[pod] for pod in in_order], rates[key], now), strict=True):
            expected[pod] = min(expected.get(pod, moment), moment)
    return expected


def _pace(due: Iterable[datetime], rate: int, now: datetime) -> Iterator[datetime]:
    """A token bucket of BURST tokens that refills at `rate` a second."""
    tokens, last = float(BURST), now
    per_second = max(rate, 1)
    for moment in due:
        start = max(moment, last)
        tokens = min(BURST, tokens + (start - last).total_seconds() * per_second)
        wait = 0.0 if tokens >= 1 else (1 - tokens) / per_second
        tokens = max(tokens - 1, 0.0)
        last = start + timedelta(seconds=wait)
        yield last


def _eviction(snapshot: Snapshot, pod: PodKey, hits: list[_Hit], claims: list[str], expected: datetime) -> Eviction:
    namespace, name, uid = pod
    found = snapshot.get(PODS, namespace, name)
    leaving = [hit for hit in hits if hit.due is not None]
    due = min(hit.due for hit in leaving if hit.due is not None)
    owner = next((o for o in found.metadata.owner_references if o.controller), None) if found is not None else None
    return Eviction(
        pod=f"{namespace}/{name}",
        uid=uid,
        claims=tuple(claims),
        devices=tuple(dict.fromkeys(hit.device for hit in leaving)),
        causes=tuple(dict.fromkeys(_tell_cause(hit.cause) for hit in leaving)),
        rules=tuple(dict.fromkeys(hit.cause.rule for hit in leaving if hit.cause.rule)),
        due=str(Time.of(due)),
        expected=str(Time.of(expected)),
        node=found.spec.node_name if isinstance(found, Pod) else "",
        owner=f"{owner.kind} {namespace}/{owner.name}" if owner is not None else "",
        priority=found.spec.priority if isinstance(found, Pod) else None,
    )


def _tell_cause(cause: _Cause) -> str:
    value = f"={cause.taint.value}" if cause.taint.value else ""
    return f"{cause.taint.key}{value}:{cause.taint.effect}" + (f" (rule {cause.rule})" if cause.rule else "")
