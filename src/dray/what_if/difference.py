"""What would a rule, a patch, a node, a workload or a claim do? The difference of two snapshots.

    before ─▶ facts ─┐
                     ├─▶ devices, claims, nodes, evictions, who waits, workloads, quotas ─▶ Difference: text, to_dict()
    after ──▶ facts ─┘

What differs and is of a kind that nobody here looks at is named as such: nothing is concluded from it.

Snapshots of one family share their machinery, which moves from one to the other; so each is asked for everything
that is needed of it in one go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from dray.allocator.reasons import Report
from dray.api.kinds import PODS
from dray.api.meta import Object
from dray.api.references import ObjectName, ObjectRef, full_name
from dray.api.resource import DeviceTaintRule, ResourceClaim
from dray.api.times import Time
from dray.eviction import Preview
from dray.prose import wording
from dray.prose.selector_problems import tell_problem
from dray.snapshot.snapshot import Snapshot
from dray.snapshot.storage_limits import tell_storage_limits
from dray.snapshot.unknown_nodes import tell_unknown_nodes
from dray.tracker import Problem
from dray.what_if import difference_text
from dray.what_if.budget_changes import BudgetChange, compare_budgets, recount
from dray.what_if.claim_changes import ClaimChange, compare_claims
from dray.what_if.daemon_changes import compare_daemons
from dray.what_if.deletions import tell_released
from dray.what_if.device_changes import DeviceChange, Inspection, compare_devices, inspect
from dray.what_if.elsewhere import MAX_MOVED, move_elsewhere
from dray.what_if.evictions import Eviction, Forecast, forecast, preview_rules
from dray.what_if.group_changes import MAX_GROUPS, GroupChange, Judged, compare_groups, groups_of, judge_groups
from dray.what_if.guard_preview import tell_held
from dray.what_if.missing import Orphaned, find_orphaned
from dray.what_if.namespace_changes import NamespaceChange, Relabelled
from dray.what_if.next_pods import MAX_ASKED, Named, NextPod, compare_next, find_named, try_next
from dray.what_if.node_changes import NodeChange, compare_nodes, differing_nodes, node_evictions
from dray.what_if.pending_changes import (
    MAX_PENDING,
    Chances,
    PendingChange,
    assess_pending,
    compare_pending,
    with_victims,
)
from dray.what_if.pod_changes import DeletedPod, RelabelledPod, deleted_pods, relabelled_pods
from dray.what_if.quota_changes import QuotaChange, compare_quotas
from dray.what_if.service_changes import ServiceChange, compare_services
from dray.what_if.unjudged import unjudged
from dray.what_if.workload_changes import Pair, Tried, WorkloadChange, compare_workloads

MAX_FAILING = 5
"""Selectors that fail that are told with their error."""


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
    """Pods that have to leave because of the change, or earlier than without it, in order."""
    nodes: tuple[NodeChange, ...] = ()
    spared: tuple[str, ...] = ()
    """Pods that would have to leave without the change."""
    protected: int = 0
    """Pods that stay although their devices get a NoExecute taint, because they tolerate it."""
    finished: str | None = None
    """When the last pod has probably left."""
    pending: tuple[PendingChange, ...] = ()
    deleted: tuple[DeletedPod, ...] = ()
    relabelled: tuple[RelabelledPod, ...] = ()
    workloads: tuple[WorkloadChange, ...] = ()
    next_pods: tuple[NextPod, ...] = ()
    quotas: tuple[QuotaChange, ...] = ()
    budgets: tuple[BudgetChange, ...] = ()
    groups: tuple[GroupChange, ...] = ()
    namespaces: tuple[NamespaceChange, ...] = ()
    services: tuple[ServiceChange, ...] = ()
    orphaned: tuple[Orphaned, ...] = ()
    unjudged: tuple[str, ...] = ()
    """Objects, and fields of objects, that differ, and of which nobody here knows what that does."""
    notes: tuple[str, ...] = ()
    """What was left out to keep the answer quick."""

    @property
    def is_disruptive(self) -> bool:
        """Whether somebody loses something: a pod its place, a claim its device, who waits their chance."""
        return (
            bool(self.evictions or self.deleted)
            or any(claim.gone for claim in self.claims)
            or any(change.victims or (change.fitted_before and change.fits is False) for change in self.pending)
            or any(change.loses for change in self.workloads)
            or any(change.loses for change in self.next_pods)
            or any(change.is_full for change in self.quotas)
            or any(change.loses for change in self.groups)
            or any(change.loses for change in self.services)
        )

    def text(self, width: int | None = None, rest: str = "") -> str:
        """For people, in lines of at most `width`; `rest` says where the rows are that a table leaves out."""
        return difference_text.tell(self, width, rest)

    def __str__(self) -> str:
        return self.text()


class _Facts(NamedTuple):
    """All that is asked of one snapshot."""

    inspection: Inspection
    forecast: Forecast
    previews: dict[str, Preview]
    chances: Chances
    next_pods: dict[int, Tried]
    groups: Judged
    problems: list[Problem]


def compare(before: Snapshot, after: Snapshot, now: datetime) -> Difference:
    """What `after` changes for devices, claims and pods, seen at `now`. Changes neither."""
    differing = before.differing(after)
    rules = [there for _, there in differing.values() if isinstance(there, DeviceTaintRule)]
    pairs = differing.values()
    named, groups = find_named(differing, before, after), groups_of(pairs)
    budgets = compare_budgets(pairs, before, after, now)
    after = after.with_typed(recount(pairs, after, now))
    old, new = _gather(before, now, named, groups), _gather(after, now, named, groups, rules)
    devices = compare_devices(old.inspection, new.inspection)
    nodes = differing_nodes(pairs)
    leaving = dict(_leave_earlier(old.forecast.evictions, new.forecast.evictions))
    leaving |= {pod: one for pod, one in node_evictions(after, nodes, now).items() if pod not in leaving}
    claims = compare_claims(after.objects(ResourceClaim), old.inspection, new.inspection, devices)
    pending = with_victims(after, tuple(compare_pending(old.chances, new.chances, before)))
    moved = move_elsewhere(after, leaving)
    fitting = [*(one.pod for one in moved if one.fits), *(one.pod for one in pending if one.pod and one.fits)]
    return Difference(
        now=str(Time.of(now)),
        objects=tuple(_object_change(here, there) for here, there in pairs),
        devices=tuple(devices),
        claims=tuple(claims),
        nodes=tuple(compare_nodes(nodes, after)),
        rules=tuple(_tell_rule(rule, new.previews[rule.metadata.name]) for rule in rules),
        evictions=moved,
        spared=tuple(
            gone.pod
            for pod, gone in old.forecast.evictions.items()
            if pod not in new.forecast.evictions and not _is_deleted(before, after, pod)
        ),
        protected=len(new.forecast.protected - old.forecast.protected),
        finished=max((eviction.expected for eviction in leaving.values()), default=None),
        pending=pending,
        deleted=tuple(deleted_pods(pairs, before, after)),
        relabelled=tuple(relabelled_pods(pairs, after)),
        workloads=(*compare_workloads(differing, before, after), *compare_daemons(pairs, nodes, before, after)),
        next_pods=tuple(compare_next(named, old.next_pods, new.next_pods)),
        quotas=tuple(compare_quotas(pairs, after)),
        budgets=tuple(budgets),
        groups=tuple(compare_groups(pairs, old.groups, new.groups)),
        namespaces=tuple(Relabelled(pairs, after).changes()),
        services=tuple(compare_services(pairs, before, after)),
        orphaned=tuple(find_orphaned(pairs, after)),
        unjudged=(*unjudged(pairs), *(one.name for one in after.ignored[len(before.ignored) :])),
        notes=(
            *tell_released(pairs),
            *_tell_failing(old.problems, new.problems, pairs),
            *tell_held(after, leaving.values(), rules, now),
            *_notes(new.chances, leaving, named, len(groups)),
            *(tell_unknown_nodes(after) if leaving or pending else ()),
            *tell_storage_limits(after, fitting),
        ),
    )


def _leave_earlier(
    before: Mapping[ObjectRef, Eviction], after: Mapping[ObjectRef, Eviction]
) -> Iterator[tuple[ObjectRef, Eviction]]:
    """Who has to leave and had not, or not so soon."""
    for pod, eviction in after.items():
        known = before.get(pod)
        if known is None or Time.parse(eviction.due).datetime() < Time.parse(known.due).datetime():
            yield pod, eviction


def _is_deleted(before: Snapshot, after: Snapshot, pod: ObjectRef) -> bool:
    """Whether a pod is taken away; one that only reservations mention never was there."""
    place = (PODS.resource, pod.namespace, pod.name)
    return before.get(*place) is not None and after.get(*place) is None


def _object_change(here: Object | None, there: Object | None) -> ObjectChange:
    obj = there or here
    assert obj is not None, "one of them is there, or nothing would differ"
    place = full_name(obj)
    change = "added" if here is None else "removed" if there is None else "changed"
    return ObjectChange(object=f"{obj.kind} {place}", change=change)


def _gather(
    snapshot: Snapshot,
    now: datetime,
    named: Named,
    groups: Collection[ObjectName],
    rules: Iterable[DeviceTaintRule] = (),
) -> _Facts:
    names = [rule.metadata.name for rule in rules]
    previews = preview_rules(snapshot, names)
    chances, next_pods = assess_pending(snapshot), try_next(snapshot, named)
    judged = judge_groups(snapshot, groups)
    return _Facts(inspect(snapshot), forecast(snapshot, now), previews, chances, next_pods, judged, snapshot.problems())


def _tell_rule(rule: DeviceTaintRule, found: Preview) -> RuleForecast:
    return RuleForecast(
        rule=rule.metadata.name,
        effect=rule.spec.taint.effect,
        devices=found.published,
        allocated=len(found.allocated),
        pods=len(found.pods),
        namespaces=found.namespaces,
    )


def _tell_failing(before: list[Problem], after: list[Problem], pairs: Collection[Pair]) -> Iterator[str]:
    """Selectors that fail where they did not, or elsewhere, and those of the rules and patches that differ."""
    differing = {(there.kind, there.metadata.name) for _, there in pairs if there is not None}
    failing = [one for one in after if one not in before or (one.kind, one.name) in differing]
    yield from (f"{one.kind} {one.name} {tell_problem(one)}" for one in failing[:MAX_FAILING])
    if more := failing[MAX_FAILING:]:
        yield f"selectors of {wording.names([f'{one.kind} {one.name}' for one in more])} fail on devices, too"


def _notes(chances: Chances, leaving: Mapping[ObjectRef, Eviction], named: Named, groups: int) -> Iterator[str]:
    if chances.skipped:
        yield f"only the first {MAX_PENDING} pending claims and pods were tried, {chances.skipped} were not"
    if len(leaving) > MAX_MOVED:
        yield f"a new place was looked for only for the first {MAX_MOVED} of {len(leaving)} pods"
    if named.skipped:
        yield f"the next pod was tried only of the first {MAX_ASKED} of {MAX_ASKED + named.skipped} workloads"
    if groups > MAX_GROUPS:
        yield f"only the first {MAX_GROUPS} of {groups} PodGroups were tried"
