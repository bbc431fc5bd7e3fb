"""What would a rule, a patch, a node or a claim do? The difference of two snapshots.

    before ─▶ facts ─┐
                     ├─▶ devices, claims, evictions, pending claims ─▶ Difference: text, to_dict()
    after ──▶ facts ─┘

Snapshots of one family share their machinery, which moves from one to the other; so each is asked for everything
that is needed of it in one go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from dray.allocator.reasons import Report
from dray.api.meta import Object
from dray.api.resource import DeviceTaintRule, ResourceClaim
from dray.api.times import Time
from dray.eviction import PodRef, Preview
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
from dray.snapshot.elsewhere import MAX_MOVED, move_elsewhere
from dray.snapshot.evictions import Eviction, Forecast, forecast, preview_rules
from dray.snapshot.snapshot import Snapshot


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
    previews: dict[str, Preview]
    chances: dict[str, Chance]


def compare(before: Snapshot, after: Snapshot, now: datetime) -> Difference:
    """What `after` changes for devices, claims and pods, seen at `now`. Changes neither."""
    differing = before.differing(after)
    rules = [there for _, there in differing.values() if isinstance(there, DeviceTaintRule)]
    old, new = _gather(before, now), _gather(after, now, rules)
    devices = compare_devices(old.inspection, new.inspection)
    leaving = {pod: eviction for pod, eviction in new.forecast.evictions.items() if pod not in old.forecast.evictions}
    claims = compare_claims(after.objects(ResourceClaim), old.inspection, new.inspection, devices)
    return Difference(
        now=str(Time.of(now)),
        objects=tuple(_object_change(here, there) for here, there in differing.values()),
        devices=tuple(devices),
        claims=tuple(claims),
        rules=tuple(_tell_rule(rule, new.previews[rule.metadata.name]) for rule in rules),
        evictions=tuple(move_elsewhere(after, leaving)),
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


def _gather(snapshot: Snapshot, now: datetime, rules: Iterable[DeviceTaintRule] = ()) -> _Facts:
    names = [rule.metadata.name for rule in rules]
    previews = preview_rules(snapshot, names)
    return _Facts(inspect(snapshot), forecast(snapshot, now), previews, assess_pending(snapshot))


def _tell_rule(rule: DeviceTaintRule, found: Preview) -> RuleForecast:
    return RuleForecast(
        rule=rule.metadata.name,
        effect=rule.spec.taint.effect,
        devices=found.published,
        allocated=len(found.allocated),
        pods=len(found.pods),
        namespaces=found.namespaces,
    )


def _notes(after: Snapshot, leaving: Mapping[PodRef, Eviction]) -> Iterator[str]:
    pending = len(after.pending())
    if pending > MAX_PENDING:
        yield f"only the first {MAX_PENDING} of {pending} pending claims were tried"
    if len(leaving) > MAX_MOVED:
        yield f"a new place was looked for only for the first {MAX_MOVED} of {len(leaving)} pods"
