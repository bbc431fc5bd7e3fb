"""Which pods have to leave because of NoExecute taints, when, and how long the rate makes it take.

    claims ─▶ eviction.find_hits: taints that they do not tolerate ─▶ pods that can be evicted
                                                                       │
    Forecast ◀─ eviction.Evictions, played through from now on ◀───────┘

Nothing is decided here: the pieces that evict are asked, with a clock that runs ahead (5055-105).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from itertools import chain
from typing import NamedTuple, TypedDict

from msgspec.structs import replace

from dray.allocator.reasons import Report
from dray.api.generated.core import Pod, PodSpec
from dray.api.generated.scheduling import PodGroup
from dray.api.kinds import CLAIMS, PODS
from dray.api.meta import ObjectMeta
from dray.api.pod_groups import group_of, leaves_as_a_whole
from dray.api.references import ObjectName, ObjectRef
from dray.api.resource import DeviceTaintRule, ResourceClaim, ResourceClaimConsumerReference
from dray.api.resource.allocated_node import allocated_node
from dray.api.resource.taint import EFFECT_NO_EXECUTE
from dray.api.taints import taint_text
from dray.api.times import Time, moment_at
from dray.eviction import Causes, DevicePlanner, Evictions, Preview, Taken, can_be_evicted, preview
from dray.eviction.allocations import devices_of
from dray.eviction.causes import Hit, TaintKey, earliest, find_hits
from dray.eviction.device_taints import DeviceTaints, Taints
from dray.eviction.group_members import shared_by
from dray.scheduling.pod_info import identified
from dray.snapshot.snapshot import Snapshot
from dray.tracker import DeviceId, TrackedTaint, Upsert

STEP = 0.05
"""Seconds. The clock that runs ahead moves by at least this: nobody reads finer, and rounding cannot make it stand."""
SOMEWHERE = "(unknown)"
"""The node of a pod that is not in the snapshot, only in the reservations of claims."""


class Budget(Report, frozen=True, kw_only=True, gc=False):
    """A PodDisruptionBudget of a pod that has to leave. Taints do not wait for it (3902-14), unless a policy does."""

    name: str
    allowed: int
    """How many of its pods may be disrupted now."""
    needed: int
    """How many of its pods have to leave."""

    @property
    def granted(self) -> int:
        """How many of those that have to leave it allows to."""
        return max(min(self.allowed, self.needed), 0)


class Eviction(Report, frozen=True, kw_only=True, gc=False):
    """A pod that has to leave."""

    pod: str
    uid: str = ""
    claims: tuple[str, ...]
    """All claims that are reserved for the pod."""
    devices: tuple[str, ...]
    """Its devices with taints that it does not tolerate, or not for long."""
    held: tuple[str, ...] = ()
    """All devices of its claims, if it is its node that it has to leave."""
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
    budget: Budget | None = None
    """The tightest of those that are asked about it."""
    more_budgets: tuple[Budget, ...] = ()
    """Further ones. The eviction API lets nobody go who has more than one."""
    fits: bool | None = None
    """Whether it fits elsewhere, after the pods that leave before it; absent if not tried, or not to be judged."""
    fits_on: str | None = None
    also_on: tuple[str, ...] = ()
    """Further nodes, where these were asked for."""
    why_not: str | None = None
    victims: tuple[str, ...] = ()
    """Pods of lower priority that the scheduler makes go for it where it fits nowhere else: then it has a place."""


class Forecast(NamedTuple):
    """The pods that have to leave, in the order in which they do, and those that may stay because they tolerate it."""

    evictions: dict[ObjectRef, Eviction]
    protected: frozenset[ObjectRef]


def forecast(snapshot: Snapshot, now: datetime) -> Forecast:
    """What NoExecute taints do to pods from now on."""
    users = _Users(snapshot)
    taints = _Taints(snapshot)
    hits: dict[ObjectRef, list[Hit]] = {}
    touched: set[ObjectRef] = set()
    for claim in snapshot.objects(ResourceClaim):
        if claim.status.reserved_for and (on := taints.evicting(claim)):
            found = list(find_hits(claim, on.__getitem__, taints.key_of))
            for ref in users.of(claim):
                touched.add(ref)
                if found:
                    hits.setdefault(ref, []).extend(found)
    claims = users.claims_of(hits)
    start = now.timestamp()
    waits = _play({ref: earliest(hit.cause for hit in found) for ref, found in hits.items()}, now)
    evictions = {ref: _tell(snapshot, ref, hits[ref], claims[ref], start + wait) for ref, wait in waits.items()}
    in_order = dict(sorted(evictions.items(), key=lambda item: (item[1].expected, item[1].pod)))
    return Forecast(in_order, frozenset(touched - hits.keys()))


def held_by(snapshot: Snapshot, claims: Iterable[str]) -> tuple[str, ...]:
    """The devices of claims, `namespace/name` each."""
    found = [snapshot.get(CLAIMS.resource, *claim.split("/", 1)) for claim in claims]
    return _each_once([str(one) for claim in found if isinstance(claim, ResourceClaim) for one in devices_of(claim)])


def preview_rules(snapshot: Snapshot, names: Collection[str]) -> dict[str, Preview]:
    """What each of these rules hits, or would hit if its effect were NoExecute, counted by the code that reports it."""
    if not names:
        return {}
    planner = DevicePlanner(snapshot.tracker())
    for rule in snapshot.objects(DeviceTaintRule):
        planner.note(Upsert(rule))
    planner.plan(0.0)
    users = _Users(snapshot)
    for group in snapshot.objects(PodGroup):
        planner.put_group(ObjectName.of(group), group)
    for claim in snapshot.objects(ResourceClaim):
        for pod in users.pods(claim):
            planner.put_pod(pod)
        planner.put_claim(ObjectName(claim.metadata.namespace, claim.metadata.name), users.identified(claim))
    return {name: preview(planner, planner.rules[name]) for name in names}


def _play(causes: Mapping[ObjectRef, Causes], now: datetime) -> dict[ObjectRef, float]:
    """After how many seconds each pod leaves, if the limiters run from now on."""
    evictions: Evictions[ObjectRef] = Evictions()
    for ref in sorted(causes):
        evictions.set(ref, causes[ref], 0.0)
    start = now.timestamp()
    played = play(lambda tick: evictions.take(start + tick, tick), lambda tick: evictions.wait(start + tick, tick))
    return {taken.pod: wait for taken, wait in played}


def play(
    take: Callable[[float], Iterable[Taken[ObjectRef]]], wait: Callable[[float], float | None]
) -> Iterator[tuple[Taken[ObjectRef], float]]:
    """Lets a clock run ahead from zero: who is taken, in that order, and after how many seconds."""
    tick = 0.0
    while True:
        moment = round(tick, 3)
        for taken in take(tick):
            yield taken, moment
        pause = wait(tick)
        if pause is None:
            return
        tick += max(pause, STEP)


class _Taints:
    """The taints on devices of one snapshot. Of use until another snapshot of the family is asked something."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._rules = {rule.metadata.name: rule for rule in snapshot.objects(DeviceTaintRule)}
        self._taints = DeviceTaints(snapshot.tracker())

    def key_of(self, taint: TrackedTaint) -> TaintKey:
        """What evictions for a taint share a limiter by: those of a rule all do (5055-90)."""
        return taint.id if taint.rule is None else taint.rule

    def evicting(self, claim: ResourceClaim) -> dict[DeviceId, Taints]:
        """The taints on devices of a claim, if there is one for which pods that do not tolerate it leave."""
        nodes = (allocated_node(claim.status.allocation),)
        found = {device: self._taints.of(device, self._rules, nodes)[0] for device in devices_of(claim)}
        for taints in found.values():
            for taint in taints:
                if taint.effect == EFFECT_NO_EXECUTE:
                    return found
        return {}


class _Users:
    """Who uses claims. Dumps may lack pods, which then count as running, and uids, in place of which names serve."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._whole = {ObjectName.of(group) for group in snapshot.objects(PodGroup) if leaves_as_a_whole(group)}
        self._members: dict[ObjectName, list[Pod]] = {}
        for pod in snapshot.objects(Pod):
            group = group_of(pod)
            if group is not None:
                self._members.setdefault(group, []).append(identified(pod))

    def pods(self, claim: ResourceClaim) -> Iterator[Pod]:
        """The pods that a claim is reserved for, each with a uid, and those that leave with them."""
        found: dict[str, Pod] = {}
        for pod in chain(self._users(claim), self._sharers(claim)):
            group = group_of(pod)
            together = self._members[group] if group is not None and group in self._whole else [pod]
            found.update((each.metadata.uid, each) for each in together)
        yield from found.values()

    def _sharers(self, claim: ResourceClaim) -> Iterator[Pod]:
        """The pods of groups that a claim is reserved for, if they use it."""
        for group in shared_by(claim):
            for pod in self._members.get(group, ()):
                named = [entry.resource_claim_name for entry in pod.spec.resource_claims]
                named += [status.resource_claim_name for status in pod.status.resource_claim_statuses]
                if claim.metadata.name in named:
                    yield pod

    def _users(self, claim: ResourceClaim) -> Iterator[Pod]:
        """The pods that a claim is reserved for themselves; another pod of the same name does not count."""
        namespace = claim.metadata.namespace
        for reference in claim.status.reserved_for:
            if reference.resource != PODS.resource or reference.api_group:
                continue
            found = self._snapshot.get(PODS.resource, namespace, reference.name)
            pod = found if isinstance(found, Pod) else _unseen(namespace, reference.name)
            known = pod.metadata.uid
            if not known:
                uid = reference.uid or f"{namespace}/{reference.name}"
                yield replace(pod, metadata=replace(pod.metadata, uid=uid))
            elif reference.uid in ("", known):
                yield pod

    def of(self, claim: ResourceClaim) -> list[ObjectRef]:
        """Those that can be evicted."""
        return [ObjectRef.of(pod) for pod in self.pods(claim) if can_be_evicted(pod)]

    def identified(self, claim: ResourceClaim) -> ResourceClaim:
        """The claim with the uids of its users, whatever it says."""
        references = tuple(
            ResourceClaimConsumerReference(resource=PODS.resource, name=pod.metadata.name, uid=pod.metadata.uid)
            for pod in self.pods(claim)
        )
        return replace(claim, status=replace(claim.status, reserved_for=references))

    def claims_of(self, pods: Collection[ObjectRef]) -> dict[ObjectRef, list[str]]:
        """All claims that are reserved for these pods."""
        by_name: dict[tuple[str, str], list[str]] = {(ref.namespace, ref.name): [] for ref in pods}
        for claim in self._snapshot.objects(ResourceClaim):
            namespace = claim.metadata.namespace
            for consumer in claim.status.reserved_for:
                found = by_name.get((namespace, consumer.name))
                if found is not None:
                    found.append(f"{namespace}/{claim.metadata.name}")
        return {ref: by_name[ref.namespace, ref.name] for ref in pods}


def _tell(snapshot: Snapshot, ref: ObjectRef, hits: list[Hit], claims: list[str], expected: float) -> Eviction:
    return Eviction(
        pod=str(ref),
        claims=tuple(claims),
        devices=_each_once([str(hit.device) for hit in hits]),
        causes=_each_once([_tell_cause(hit.taint) for hit in hits]),
        rules=_each_once([hit.taint.rule for hit in hits if hit.taint.rule]),
        due=_moment(min([hit.cause.due for hit in hits])),
        expected=_moment(expected),
        **told_by(snapshot.get(PODS.resource, ref.namespace, ref.name)),
    )


def _each_once(values: list[str]) -> tuple[str, ...]:
    return tuple(values if len(values) < 2 else dict.fromkeys(values))


@lru_cache(maxsize=1024)
def _moment(seconds: float) -> str:
    """Many pods leave at the same time."""
    return str(Time.of(moment_at(seconds)))


class _Told(TypedDict, total=False):
    uid: str
    node: str
    owner: str
    priority: int | None


def told_by(pod: object) -> _Told:
    """What the pod itself says about its eviction, if it is there."""
    if not isinstance(pod, Pod):
        return {}
    meta = pod.metadata
    owner = next((one for one in meta.owner_references if one.controller), None) if meta.owner_references else None
    return {
        "uid": meta.uid,
        "node": pod.spec.node_name,
        "owner": f"{owner.kind} {meta.namespace}/{owner.name}" if owner is not None else "",
        "priority": pod.spec.priority,
    }


def _unseen(namespace: str, name: str) -> Pod:
    return Pod(metadata=ObjectMeta(name=name, namespace=namespace), spec=PodSpec(node_name=SOMEWHERE))


def _tell_cause(tracked: TrackedTaint) -> str:
    return taint_text(tracked.taint) + (f" (rule {tracked.rule})" if tracked.rule else "")
