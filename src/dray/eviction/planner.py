"""From devices, claims and pods to evictions. Events and the time go in; pods to delete come out. No I/O.

    slices, rules, … ─▶ note ──┐ devices whose taints changed ─▶ claims that hold them ─▶ their causes
    claims ─▶ put_claim ───────┤                                                          │ changed
    pods ─▶ put_pod ───────────┘                                 pods that use them ◀─────┘
                                                                   │ plan(): set, change or cancel the eviction
                                                                   ▼
                                                        take(): due, and let go by a limiter

Only what an event changes is computed again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import islice
from typing import TypeVar

from dray.api.generated.core import Pod
from dray.api.resource import DeviceTaintRule, ResourceClaim
from dray.eviction.allocations import Allocations, ClaimKey, PoolKey, devices_of
from dray.eviction.causes import Cause, Causes, TaintKey, find_causes, names_device
from dray.eviction.device_taints import DeviceTaints, Taints
from dray.eviction.evictions import Evictions, Taken
from dray.eviction.pods import PodRef
from dray.eviction.tally import Progress, Tally
from dray.tracker import DeviceId, Event, Problem, Remove, TrackedTaint, Tracker, Upsert

T = TypeVar("T", bound=Hashable)


class Planner:
    """All that eviction because of device taints needs to know."""

    def __init__(self, tracker: Tracker | None = None) -> None:
        """`tracker` carries the feature switches; it is fed here."""
        self.tracker = tracker or Tracker()
        self.allocations = Allocations()
        self.rules: dict[str, DeviceTaintRule] = {}
        self._taints = DeviceTaints(self.tracker)
        self._evictions: Evictions[PodRef] = Evictions()
        self._tally = Tally()
        self._known: dict[DeviceId, Taints] = {}
        self._unpublished: set[DeviceId] = set()
        self._causes: dict[ClaimKey, Causes] = {}
        self._events: list[Event] = []
        self._dirty_devices: dict[DeviceId, None] = {}
        self._dirty_claims: dict[ClaimKey, None] = {}
        self._dirty_pods: dict[PodRef, None] = {}
        self._held_back: set[PodRef] = set()

    def note(self, event: Event) -> None:
        """A slice, rule, class or patch has changed. Takes effect with the next `plan`."""
        self._events.append(event)

    def put_claim(self, key: ClaimKey, claim: ResourceClaim | None) -> None:
        """A claim has changed, or (None) is gone."""
        before = self.allocations.claims.get(key)
        if before is None and (claim is None or claim.status.allocation is None):
            return
        uids = self.allocations.put_claim(key, claim)
        self._look_at({*devices_of(before), *devices_of(claim)})
        self._dirty_claims[key] = None
        for uid in uids:
            self._touch(uid)

    def put_pod(self, pod: Pod, *, is_gone: bool = False) -> None:
        """A pod has changed, or is gone."""
        ref = self.allocations.put_pod(pod, is_gone=is_gone)
        if ref is None:
            self._set(PodRef.of(pod), {}, 0.0)
        elif self.allocations.used_by(ref.uid):
            self._dirty_pods[ref] = None

    def plan(self, tick: float, limit: int = 500) -> list[PodRef]:
        """Brings up to `limit` devices, claims and pods up to date; `is_current` says whether that was all.

        Returns the pods that were to be evicted and may stay after all.
        """
        self._apply_events()
        self._look_at(_pop(self._dirty_devices, limit))
        for key in _pop(self._dirty_claims, limit):
            self._plan_claim(key)
        cancelled = []
        for ref in _pop(self._dirty_pods, limit):
            is_there = self.allocations.pod(ref.uid) is not None
            had = bool(self._evictions.causes(ref)) or ref in self._held_back
            self._set(ref, self._causes_of(ref) if is_there else {}, tick)
            if is_there and had and not self._evictions.causes(ref):
                cancelled.append(ref)
            self._held_back.discard(ref)
        return cancelled

    @property
    def is_current(self) -> bool:
        """Whether `plan` has nothing left to do."""
        return not (self._events or self._dirty_devices or self._dirty_claims or self._dirty_pods)

    def take(self, now: float, tick: float) -> list[Taken[PodRef]]:
        """The pods to evict now. Each stays pending until it is gone, or `evicted` or `put_pod` says so."""
        taken = self._evictions.take(now, tick)
        if self.is_current:
            return taken
        # A rule that is gone must not evict while `plan` is on its way through those that it hit.
        return [each for each in taken if self._is_due(each.pod, now)]

    def wait(self, now: float, tick: float) -> float | None:
        """After how many seconds `take` may have something; None if nothing is planned."""
        return self._evictions.wait(now, tick)

    def must_leave(self, pod: PodRef) -> bool:
        """Whether a pod that was taken still has to go."""
        return bool(self._evictions.causes(pod))

    def evicted(self, pod: PodRef, causes: Causes) -> None:
        """A pod was deleted for these causes."""
        self._tally.evicted({key: cause for key, cause in causes.items() if self._is_live(cause)})
        self._set(pod, {}, 0.0)

    def causes(self, pod: PodRef) -> Causes:
        """Why a pod must leave; nothing if it may stay."""
        return self._evictions.causes(pod)

    @property
    def active(self) -> int:
        """How many taints are rationed or pods pending now: zero when there is nothing to do (5055-94)."""
        return len(self._evictions) + self._evictions.active_limiters

    def progress(self, rule: str) -> Progress:
        """How far a rule is."""
        return self._tally.progress(rule)

    def take_changed_rules(self) -> set[str]:
        """The rules that have changed or made progress since the last call."""
        changed, self._tally.changed = self._tally.changed, set()
        return changed & self.rules.keys()

    @property
    def problems(self) -> list[Problem]:
        """Selectors of rules and patches that fail."""
        return self.tracker.problems

    @property
    def unpublished(self) -> frozenset[DeviceId]:
        """The devices that are allocated but not published."""
        return frozenset(self._unpublished)

    def key_of(self, taint: TrackedTaint) -> TaintKey:
        """What evictions for a taint share a limiter by: of a rule, on whichever devices, all (5055-90)."""
        rule = self.rules.get(taint.rule) if taint.rule is not None else None
        return taint.id if rule is None else rule.metadata.uid or rule.metadata.name

    def _is_live(self, cause: Cause) -> bool:
        rule = self.rules.get(cause.rule) if cause.rule is not None else None
        return rule is not None and cause.taint in (rule.metadata.uid, rule.metadata.name)

    def _apply_events(self) -> None:
        if not self._events:
            return
        events, self._events = self._events, []
        pools = self.tracker.apply_all(events).pools
        named: set[DeviceId] = set()
        for event in events:
            named |= self._note_rule(event)
        self._taints.forget(pools)
        self._dirty_devices.update(dict.fromkeys(named))
        self._dirty_devices.update(dict.fromkeys(self._held_in(pools)))
        # A rule of the same name may be another one now, which no taint tells on devices that are not published.
        self._dirty_claims.update((key, None) for device in named for key in self.allocations.holders(device))

    def _note_rule(self, event: Event) -> set[DeviceId]:
        """Keeps the table of rules; returns the unpublished devices that the rule names, before or after."""
        if isinstance(event, Remove):
            if event.kind != "DeviceTaintRule":
                return set()
            name, after = event.name, None
        elif isinstance(event, Upsert) and isinstance(event.object, DeviceTaintRule):
            name, after = event.object.metadata.name, event.object
        else:
            return set()
        before = self.rules.pop(name, None)
        if after is not None:
            self.rules[name] = after
        is_same = before is not None and after is not None and before.metadata.uid == after.metadata.uid
        if not is_same:
            self._tally.forget(name)
        elif before is not None and after is not None and before.spec == after.spec:
            return set()
        self._tally.changed.add(name)
        either = [rule for rule in (before, after) if rule is not None]
        return {device for device in self._unpublished if any(names_device(rule, device) for rule in either)}

    def _held_in(self, pools: Iterable[PoolKey]) -> Iterable[DeviceId]:
        return (device for pool in pools for device in self.allocations.held_in(pool))

    def _look_at(self, devices: Iterable[DeviceId]) -> None:
        """Finds which taints are on allocated devices now; claims on devices where they differ need another look."""
        for device in devices:
            holders = self.allocations.holders(device)
            if not holders:
                self._known.pop(device, None)
                self._unpublished.discard(device)
                continue
            taints, is_published = self._taints.of(device, self.rules)
            (self._unpublished.discard if is_published else self._unpublished.add)(device)
            if self._known.get(device, ()) != taints:
                self._dirty_claims.update(dict.fromkeys(holders))
            self._known[device] = taints

    def _plan_claim(self, key: ClaimKey) -> None:
        claim = self.allocations.claims.get(key)
        causes = {} if claim is None else find_causes(claim, self._taints_on, self.key_of)
        if causes == self._causes.get(key, {}):
            return
        if causes:
            self._causes[key] = causes
        else:
            del self._causes[key]
        self._dirty_pods.update(dict.fromkeys(self.allocations.users(key)))

    def _taints_on(self, device: DeviceId) -> Taints:
        return self._known.get(device, ())

    def _is_due(self, pod: PodRef, now: float) -> bool:
        """Looks again whether a pod must leave now; if not, the next `plan` decides what becomes of it."""
        for key in self.allocations.used_by(pod.uid):
            self._look_at(set(devices_of(self.allocations.claims[key])))
            self._plan_claim(key)
        if any(cause.due <= now for cause in self._causes_of(pod).values()):
            return True
        self._set(pod, {}, 0.0)
        self._held_back.add(pod)
        self._dirty_pods[pod] = None
        return False

    def _touch(self, uid: str) -> None:
        pod = self.allocations.pod(uid)
        if pod is not None:
            self._dirty_pods[pod] = None

    def _causes_of(self, pod: PodRef) -> Causes:
        """The causes of all claims that a pod uses; of one taint on several the earliest."""
        found = [self._causes[key] for key in self.allocations.used_by(pod.uid) if key in self._causes]
        if len(found) <= 1:
            return found[0] if found else {}
        merged: dict[TaintKey, Cause] = {}
        for causes in found:
            for taint, cause in causes.items():
                if taint not in merged or cause.due < merged[taint].due:
                    merged[taint] = cause
        return merged

    def _set(self, pod: PodRef, causes: Causes, tick: float) -> None:
        before = self._evictions.causes(pod)
        if before != causes:
            self._evictions.set(pod, causes, tick)
            self._tally.move(pod, before, causes)


def _pop(waiting: dict[T, None], limit: int) -> list[T]:
    """Takes the first few."""
    taken = list(islice(waiting, limit))
    for each in taken:
        del waiting[each]
    return taken
