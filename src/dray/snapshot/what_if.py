"""What would a rule, a patch, a node or a claim do? The difference of two snapshots.

    before ─▶ facts ─┐
                     ├─▶ devices, claims, evictions, pending claims ─▶ Difference: text, to_dict()
    after ──▶ facts ─┘

Snapshots of one family share their machinery, which moves from one to the other; so each is asked for everything
that is needed of it in one go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from msgspec.structs import replace

from dray.allocator.reasons import Report
from dray.api.meta import Object
from dray.api.resource import (
    DeviceTaintRule,
    DeviceToleration,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
)
from dray.api.resource.toleration import toleration_seconds
from dray.api.times import Time
from dray.snapshot import what_if_text
from dray.snapshot.claim_changes import (
    MAX_PENDING,
    Chance,
    ClaimChange,
    PendingChange,
    assess_pending,
    compare_claims,
    compare_pending,
)
from dray.snapshot.device_changes import DeviceChange, Inspection, compare_devices, inspect
from dray.snapshot.evictions import Eviction, Forecast, PodKey, forecast
from dray.snapshot.snapshot import Snapshot
from dray.snapshot.world import CLAIMS

MAX_MOVED = 500
"""Evicted pods for which a new place is looked for."""


class ObjectChange(Report, frozen=True, kw_only=True):
    """An object that is `added`, `changed` or `removed`."""

    object: str
    change: str


class RuleForecast(Report, frozen=True, kw_only=True):
    """What a new or changed taint rule hits. With another effect than NoExecute: as if it were that (5055-105)."""

    rule: str
    effect: str
    devices: int
    """Devices that it selects."""
    allocated: int
    """Those of them that claims hold."""
    pods: int
    """Pods that it evicts, or would evict."""
    namespaces: int


class Difference(Report, frozen=True, kw_only=True):
    """What is different after a change. `str()` is for people, `to_dict()` for programs."""

    now: str
    objects: tuple[ObjectChange, ...] = ()
    devices: tuple[DeviceChange, ...] = ()
    claims: tuple[ClaimChange, ...] = ()
    rules: tuple[RuleForecast, ...] = ()
    evictions: tuple[Eviction, ...] = ()
    """Pods that have to leave because of the change, in order."""
    spared: tuple[str, ...] = ()
    """Pods that would have to leave without the change."""
    protected: int = 0
    """Pods that stay although their devices get a NoExecute taint, because they tolerate it."""
    finished: str | None = None
    """When the last pod has probably left."""
    pending: tuple[PendingChange, ...] = ()
    notes: tuple[str, ...] = ()
    """What was left out to keep the answer quick."""

    @property
    def is_disruptive(self) -> bool:
        """Whether somebody loses something: a pod its place, a claim its device, a pending claim its chance."""
        return (
            bool(self.evictions)
            or any(claim.gone for claim in self.claims)
            or any(claim.fitted_before and not claim.fits for claim in self.pending)
        )

    def text(self, width: int | None = None) -> str:
        """For people, in lines of at most `width`."""
        return what_if_text.tell(self, width)

    def __str__(self) -> str:
        return self.text()


class _Facts(NamedTuple):
    """All that is asked of one snapshot."""

    inspection: Inspection
    forecast: Forecast
    chances: dict[str, Chance]


def compare(before: Snapshot, after: Snapshot, now: datetime) -> Difference:
    """What `after` changes for devices, claims and pods, seen at `now`. Changes neither."""
    differing = before.differing(after)
    old, new = _gather(before, now), _gather(after, now)
    devices = compare_devices(old.inspection, new.inspection)
    leaving = {pod: eviction for pod, eviction in new.forecast.evictions.items() if pod not in old.forecast.evictions}
    rules = [there for _, there in differing.values() if isinstance(there, DeviceTaintRule)]
    claims = compare_claims(after.objects(ResourceClaim), old.inspection, new.inspection, devices)
    return Difference(
        now=str(Time.of(now)),
        objects=tuple(_object_change(here, there) for here, there in differing.values()),
        devices=tuple(devices),
        claims=tuple(claims),
        rules=tuple(_foresee(after, rule, now) for rule in rules),
        evictions=tuple(_move_elsewhere(after, leaving)),
        spared=tuple(gone.pod for pod, gone in old.forecast.evictions.items() if pod not in new.forecast.evictions),
        protected=len(new.forecast.protected - old.forecast.protected),
        finished=max((eviction.expected for eviction in leaving.values()), default=None),
        pending=tuple(compare_pending(old.chances, new.chances)),
        notes=tuple(_notes(after, leaving)),
    )


def _object_change(here: Object | None, there: Object | None) -> ObjectChange:
    obj = there or here
    assert obj is not None, "one of them is there, or nothing would differ"
    place = f"{obj.metadata.namespace}/{obj.metadata.name}" if obj.metadata.namespace else obj.metadata.name
    change = "added" if here is None else "removed" if there is None else "changed"
    return ObjectChange(object=f"{obj.kind} {place}", change=change)


def _gather(snapshot: Snapshot, now: datetime) -> _Facts:
    return _Facts(inspect(snapshot), forecast(snapshot, now), assess_pending(snapshot))


def _foresee(after: Snapshot, rule: DeviceTaintRule, now: datetime) -> RuleForecast:
    name = rule.metadata.name
    devices = after.selected_devices(name)
    pods = [eviction for eviction in forecast(after, now, pretend=(name,)).evictions.values() if name in eviction.rules]
    return RuleForecast(
        rule=name,
        effect=rule.spec.taint.effect,
        devices=len(devices),
        allocated=sum(bool(after.holders(device)) for device in devices),
        pods=len(pods),
        namespaces=len({eviction.pod.partition("/")[0] for eviction in pods}),
    )


def _move_elsewhere(after: Snapshot, leaving: Mapping[PodKey, Eviction]) -> Iterator[Eviction]:
    """Looks for a new place for each pod, in the order in which they leave; what one takes the next does not get.

    Only devices count: whether the rest of the pod fits there is for the scheduler to say.
    """
    trial = _release(after, leaving)
    for number, eviction in enumerate(leaving.values()):
        if number >= MAX_MOVED:
            yield eviction
            continue
        outcome = trial.allocate(*eviction.claims)
        if outcome.status == "allocated":
            trial = trial.with_allocations(outcome)
            yield replace(eviction, fits=True, fits_on=outcome.node)
        else:
            yield replace(eviction, fits=False, why_not=outcome.message)


def _release(after: Snapshot, leaving: Mapping[PodKey, Eviction]) -> Snapshot:
    """Without the allocations of claims that nobody uses once these pods have left."""
    released = []
    for name in dict.fromkeys(claim for eviction in leaving.values() for claim in eviction.claims):
        namespace, _, short = name.partition("/")
        claim = after.get(CLAIMS, namespace, short)
        if not isinstance(claim, ResourceClaim):
            continue
        users = {(namespace, used.name, used.uid) for used in claim.status.reserved_for}
        if users <= leaving.keys():
            released.append(replace(claim, spec=_to_stay(claim.spec), status=ResourceClaimStatus()))
    return after.with_objects(*released)


def _to_stay(spec: ResourceClaimSpec) -> ResourceClaimSpec:
    """Without tolerations for a limited time: a device that the pod has to leave again is not a new place."""
    requests = []
    for request in spec.devices.requests:
        exactly = request.exactly
        requests.append(
            replace(
                request,
                exactly=exactly and replace(exactly, tolerations=_lasting(exactly.tolerations)),
                first_available=tuple(
                    replace(option, tolerations=_lasting(option.tolerations)) for option in request.first_available
                ),
            )
        )
    return replace(spec, devices=replace(spec.devices, requests=tuple(requests)))


def _lasting(tolerations: tuple[DeviceToleration, ...]) -> tuple[DeviceToleration, ...]:
    return tuple(toleration for toleration in tolerations if toleration_seconds(toleration) is None)


def _notes(after: Snapshot, leaving: Mapping[PodKey, Eviction]) -> Iterator[str]:
    pending = len(after.pending())
    if pending > MAX_PENDING:
        yield f"only the first {MAX_PENDING} of {pending} pending claims were tried"
    if len(leaving) > MAX_MOVED:
        yield f"a new place was looked for only for the first {MAX_MOVED} of {len(leaving)} pods"
