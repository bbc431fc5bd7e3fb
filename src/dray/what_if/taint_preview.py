"""What a taint would do, before it is there: the devices or the node, who has to leave, when, and where to.

Decided by the code that evicts (`eviction.DevicePlanner`, `eviction.NodePlanner`) on a copy of the cluster that has the
taint. With another effect than NoExecute nobody leaves; then the preview says who would (5055-104).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from msgspec.structs import replace

from dray.allocator.reasons import Report
from dray.api.generated.core import Node, Pod, Taint
from dray.api.kinds import PODS
from dray.api.node_annotations import Ration, write_entries
from dray.api.pod_groups import group_of
from dray.api.references import ObjectRef, full_name
from dray.api.resource import DeviceTaintRule, ResourceClaim
from dray.api.resource.rule_annotations import EVICTIONS_PER_SECOND
from dray.api.resource.taint import DEFAULT_EVICTIONS_PER_SECOND, EFFECT_NO_EXECUTE
from dray.api.taints import TaintName, taint_text
from dray.api.times import Time, later
from dray.eviction import can_be_evicted
from dray.eviction.allocations import devices_of
from dray.eviction.causes import names_device
from dray.eviction.drain import belongs_to_node
from dray.eviction.group_members import shared_by
from dray.eviction.limiter import BURST
from dray.eviction.node_planner import NodePlanner
from dray.prose import wording
from dray.snapshot.snapshot import Snapshot
from dray.snapshot.storage_limits import tell_storage_limits
from dray.snapshot.unknown_nodes import tell_unknown_nodes
from dray.tracker import DeviceId
from dray.what_if.budgets import with_budgets
from dray.what_if.elsewhere import MAX_MOVED, move_elsewhere
from dray.what_if.evictions import Eviction, forecast, held_by, play, told_by
from dray.what_if.guard_preview import GuardPreview, is_sweeping, preview_guard, tell_stopped

CHOICES = 2
"""How many nodes are named to which a pod could go."""


class TaintPreview(Report, frozen=True, kw_only=True):
    """Who is hit. `evicts` tells whether the pods really leave, or only would with the effect NoExecute."""

    now: str
    taints: tuple[str, ...]
    """`key=value:Effect`."""
    rules: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    """Published devices, and those that are only held."""
    held: int = 0
    """How many of the devices claims hold."""
    evicts: bool
    pods: tuple[Eviction, ...] = ()
    """In the order in which they leave."""
    namespaces: dict[str, int] = {}
    """How many pods leave each."""
    protected: tuple[str, ...] = ()
    """Pods that stay because they tolerate it."""
    left_alone: tuple[str, ...] = ()
    """Pods that stay because a drain leaves those that belong to their node."""
    finished: str | None = None
    may_wait: bool = False
    """Whether budgets or missing replacements may make pods leave later than is expected here."""
    guard: GuardPreview | None = None
    """What the guard says to it, where the cluster's controllers have told their limit."""
    notes: tuple[str, ...] = ()


def preview_rules(
    snapshot: Snapshot, rules: Sequence[DeviceTaintRule], now: datetime, *, drains: bool = False
) -> TaintPreview:
    """What new or changed rules, with one taint, would do. Who `drains` has a pace of its own."""
    names = frozenset(rule.metadata.name for rule in rules)
    after = snapshot.with_typed(_evicting(rule, now) for rule in rules)
    then = forecast(after, now)
    leaving = {ref: one for ref, one in then.evictions.items() if not names.isdisjoint(one.rules)}
    published = [device.id for name in sorted(names) for device in after.selected_devices(name)]
    holding = list(_holding(snapshot, frozenset(published), rules))
    used = {device for one in holding for device in one.devices}
    users = {user for one in holding for user in one.users}
    evicts = bool(rules) and rules[0].spec.taint.effect == EFFECT_NO_EXECUTE
    rates = {rule.spec.taint.evictions_per_second or DEFAULT_EVICTIONS_PER_SECOND for rule in rules}
    told_pods = _tell_pods(after, leaving, now)
    return replace(
        told_pods,
        notes=(
            *told_pods.notes,
            *(_tell_rate(rates, len(leaving)) if evicts and not drains and len(rules) == 1 else ()),
            *(_tell_unused(snapshot, holding, leaving) if evicts else ()),
        ),
        taints=tuple(dict.fromkeys(taint_text(rule.spec.taint) for rule in rules)),
        rules=tuple(rule.metadata.name for rule in rules),
        devices=tuple(map(str, [*dict.fromkeys(published), *sorted(used.difference(published))])),
        held=len(used & _held_alone(snapshot)),
        guard=_guard(snapshot, len(leaving), rules, now),
        evicts=evicts,
        protected=tuple(sorted(name for name in map(str, then.protected) if name in users)),
    )


def _guard(snapshot: Snapshot, leaving: int, rules: Sequence[DeviceTaintRule], now: datetime) -> GuardPreview | None:
    """Who writes the rules says that an empty selector is meant, as far as that is within the limit."""
    causes = sorted(f"rule/{rule.metadata.name}" for rule in rules)
    sweeps = any(map(is_sweeping, rules))
    guard = preview_guard(snapshot, leaving, causes, nodes=False, is_sweeping=sweeps, now=now)
    return None if guard is None else replace(guard, asks=guard.is_sweeping and not guard.is_over)


def preview_nodes(
    snapshot: Snapshot,
    nodes: Sequence[Node],
    taints: Sequence[Taint],
    now: datetime,
    ration: Ration | None = None,
    *,
    drains: bool = False,
) -> TaintPreview:
    """What nodes with these taints, which are new or changed, would do to the pods on them.

    With a ration pods leave for these taints at its rate. One that `drains` leaves pods alone that belong to a node.
    """
    names = tuple(node.metadata.name for node in nodes)
    there = [pod for pod in snapshot.objects(Pod) if pod.spec.node_name in names]
    pods = [pod for pod in there if not (drains and belongs_to_node(pod))]
    changed = [replace(node, spec=replace(node.spec, taints=_merged(node.spec.taints, taints))) for node in nodes]
    claims = _claims_by_pod(snapshot, pods)
    told = tuple(map(taint_text, taints))
    leaving = {
        ref: Eviction(
            pod=str(ref),
            claims=claims.get(ref.uid, ()),
            devices=(),
            held=held_by(snapshot, claims.get(ref.uid, ())),
            causes=told,
            due=str(Time.of(later(now, due))),
            expected=str(Time.of(later(now, expected))),
            **told_by(snapshot.get(PODS.resource, ref.namespace, ref.name)),
        )
        for ref, due, expected in _departures(names, taints, pods, ration)
    }
    stay = [ObjectRef.of(pod) for pod in pods if can_be_evicted(pod) and ObjectRef.of(pod) not in leaving]
    told_pods = _tell_pods(snapshot.with_typed(changed), leaving, now)
    evicts = any(taint.effect == EFFECT_NO_EXECUTE for taint in taints)
    rates = {ration.rate} if ration is not None and evicts else set()
    left_alone = sorted(str(ObjectRef.of(pod)) for pod in there if pod not in pods and can_be_evicted(pod))
    return replace(
        told_pods,
        notes=(*told_pods.notes, *_tell_left_alone(left_alone), *_tell_rate(rates, len(leaving))),
        taints=told,
        nodes=names,
        guard=preview_guard(snapshot, len(leaving), [f"node/{name}" for name in names], nodes=True, now=now),
        evicts=evicts,
        protected=tuple(sorted(map(str, stay))),
        left_alone=tuple(left_alone),
    )


def _tell_rate(rates: Iterable[int], leaving: int) -> Iterator[str]:
    """Of a taint it is no rate from the first pod on (5055-90)."""
    for rate in rates:
        if leaving > BURST:
            yield f"{BURST} pods leave at once, then {rate} a second"


def _tell_left_alone(pods: Sequence[str]) -> Iterator[str]:
    if pods:
        verb = "stays" if len(pods) == 1 else "stay"
        yield f"{wording.names(pods, 5)} {verb}: pods of DaemonSets and static pods belong to their node"


def _tell_pods(after: Snapshot, leaving: Mapping[ObjectRef, Eviction], now: datetime) -> TaintPreview:
    moved = move_elsewhere(after, with_budgets(after, leaving), CHOICES)
    namespaces: dict[str, int] = {}
    for ref in leaving:
        namespaces[ref.namespace] = namespaces.get(ref.namespace, 0) + 1
    notes: list[str] = []
    if len(leaving) > MAX_MOVED:
        notes.append(f"a new place was looked for only for the first {MAX_MOVED} of {len(leaving)} pods")
    if leaving:
        fitting = [one.pod for one in moved if one.fits]
        notes += [*tell_stopped(after), *tell_unknown_nodes(after), *tell_storage_limits(after, fitting)]
    return TaintPreview(
        now=str(Time.of(now)),
        taints=(),
        evicts=False,
        pods=moved,
        namespaces=dict(sorted(namespaces.items())),
        finished=max((one.expected for one in moved), default=None),
        notes=tuple(notes),
    )


class _Holder(NamedTuple):
    """A claim, those of its devices that the rules reach, published or named (SVS-23), and the pods that use it."""

    claim: ResourceClaim
    devices: list[DeviceId]
    users: set[str]


def _holding(
    snapshot: Snapshot, published: Collection[DeviceId], rules: Sequence[DeviceTaintRule]
) -> Iterator[_Holder]:
    for claim in snapshot.objects(ResourceClaim):
        mine = [
            device
            for device in devices_of(claim)
            if device in published or any(names_device(rule, device) for rule in rules)
        ]
        if mine:
            users = {f"{claim.metadata.namespace}/{consumer.name}" for consumer in claim.status.reserved_for}
            if shared := set(shared_by(claim)):
                users.update(full_name(pod) for pod in snapshot.objects(Pod) if group_of(pod) in shared)
            yield _Holder(claim, mine, users)


def _tell_unused(snapshot: Snapshot, holding: Iterable[_Holder], leaving: Iterable[ObjectRef]) -> Iterator[str]:
    """Only a pod that has a node can be told to leave: what others hold stays held, however long one waits."""
    placed = {str(ref) for ref in leaving}  # files may leave pods out
    placed.update(full_name(pod) for pod in snapshot.objects(Pod) if pod.spec.node_name)
    idle = [one for one in holding if placed.isdisjoint(one.users)]
    if idle:
        claims = wording.names(sorted(full_name(one.claim) for one in idle), 5)
        verb, whose = ("stays", "it") if len(idle) == 1 else ("stay", "them")
        waiting = sorted(set().union(*(one.users for one in idle)))
        users = f" (reserved for {wording.names(waiting, 5)})" if waiting else ""
        yield f"{claims} {verb} allocated{users}: nobody who uses {whose} is on a node, to be told to leave"


def _held_alone(snapshot: Snapshot) -> set[DeviceId]:
    """Devices that are not free for others: access for admins takes nothing from anybody (4381-48)."""
    return {
        DeviceId(result.driver, result.pool, result.device)
        for claim in snapshot.objects(ResourceClaim)
        if claim.status.allocation is not None
        for result in claim.status.allocation.devices.results
        if not result.admin_access
    }


def _evicting(rule: DeviceTaintRule, now: datetime) -> DeviceTaintRule:
    taint = rule.spec.taint
    if taint.effect == EFFECT_NO_EXECUTE:
        return rule
    taint = replace(taint, effect=EFFECT_NO_EXECUTE, time_added=Time.of(now))
    return replace(rule, spec=replace(rule.spec, taint=taint))


def _departures(
    nodes: Iterable[str], taints: Iterable[Taint], pods: Iterable[Pod], ration: Ration | None
) -> Iterator[tuple[ObjectRef, float, float]]:
    """After how many seconds each pod has to leave nodes that get these taints now, and does, in that order."""
    pretended = [replace(taint, effect=EFFECT_NO_EXECUTE) for taint in taints]
    said = write_entries({TaintName.of(taint): ration for taint in pretended}) if ration is not None else None
    annotations = {EVICTIONS_PER_SECOND: said} if said is not None else {}
    planner = NodePlanner()
    for pod in sorted(pods, key=ObjectRef.of):
        planner.put_pod(pod, 0.0)
    for node in nodes:
        planner.put_node(node, pretended, 0.0, annotations)
    planner.finish(0.0)
    for taken, wait in play(planner.take, planner.wait):
        yield taken.pod, taken.cause.due, max(wait, taken.cause.due)


def _merged(old: Iterable[Taint], new: Sequence[Taint]) -> tuple[Taint, ...]:
    replaced = {(taint.key, taint.effect) for taint in new}
    return (*(taint for taint in old if (taint.key, taint.effect) not in replaced), *new)


def _claims_by_pod(snapshot: Snapshot, pods: Iterable[Pod]) -> dict[str, tuple[str, ...]]:
    wanted = {pod.metadata.uid for pod in pods}
    found: dict[str, tuple[str, ...]] = {}
    for claim in snapshot.objects(ResourceClaim):
        for consumer in claim.status.reserved_for:
            if consumer.resource == PODS.resource and consumer.uid in wanted:
                name = full_name(claim)
                found[consumer.uid] = (*found.get(consumer.uid, ()), name)
    return found
