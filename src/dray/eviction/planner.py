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

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import TypeVar

from dray.api.generated.core import Pod
from dray.api.resource import DeviceTaintRule, ResourceClaim, ResourceSlice
from dray.api.resource.rule_annotations import taint_of
from dray.eviction.allocations import Allocations, ClaimKey, PoolKey, devices_of
from dray.eviction.causes import Cause, Causes, TaintKey, find_causes, names_device
from dray.eviction.device_guard import DeviceGuard
from dray.eviction.device_taints import DeviceTaints, Taints
from dray.eviction.evictions import Evictions, Taken
from dray.eviction.guard import Hold
from dray.eviction.pods import PodRef, can_be_evicted
from dray.eviction.settings import Limit
from dray.eviction.tally import Progress, Tally
from dray.tracker import DeviceId, Event, Problem, Remove, TrackedTaint, Tracker, Upsert

T = TypeVar("T", bound=Hashable)


class Planner:
    """All that eviction because of device taints needs to know."""

    def __init__(
        self, tracker: Tracker | None = None, *, taint_rules: bool = True, max_evictions: Limit | None = None
    ) -> None:
        """`tracker` carries the feature switches, and is fed here; without `taint_rules` there are none (SVS-14).

        A taint that would evict more than `max_evictions` is held until it is confirmed.
        """
        self.tracker = tracker or Tracker(taint_rules=taint_rules)
        self._with_rules = taint_rules
        self.guard = None if max_evictions is None else DeviceGuard(max_evictions)
        self.allocations = Allocations()
        self.rules: dict[str, DeviceTaintRule] = {}
        self._taints = DeviceTaints(self.tracker)
        self._evictions: Evictions[PodRef] = Evictions()
        self._tally = Tally()
        self._known: dict[DeviceId, Taints] = {}
        self._unpublished: set[DeviceId] = set()
        self._causes: dict[ClaimKey, Causes] = {}
        self._events: list[Event] = []
        self._dirty_devices: OrderedDict[DeviceId, None] = OrderedDict()
        self._dirty_claims: OrderedDict[ClaimKey, None] = OrderedDict()
        self._dirty_pods: OrderedDict[PodRef, None] = OrderedDict()
        self._held_back: set[PodRef] = set()
        self._exempt: dict[PodRef, Causes] = {}

    def note(self, event: Event) -> None:
        """A slice, rule, class or patch has changed. Takes effect with the next `plan`."""
        self._events.append(event)

    def put_claim(self, key: ClaimKey, claim: ResourceClaim | None) -> None:
        """A claim has changed, or (None) is gone."""
        before = self.allocations.claims.get(key)
        if before is None and (claim is None or claim.status.allocation is None):
            return
        uids = self.allocations.put_claim(key, claim)
        devices = {*devices_of(before), *devices_of(claim)}
        self._look_at(devices)
        if self.guard is not None or key in self._causes or any(map(self._known.get, devices)):
            self._dirty_claims[key] = None
            for uid in uids:
                self._touch(uid)

    def put_pod(self, pod: Pod, *, is_gone: bool = False) -> None:
        """A pod has changed, or is gone."""
        before = self.allocations.pod(pod.metadata.uid)
        if before is None and (is_gone or not can_be_evicted(pod)):
            return
        ref = self.allocations.put_pod(pod, is_gone=is_gone)
        if ref is None:
            self._exempt.pop(PodRef.of(pod), None)
            self._set(PodRef.of(pod), {}, 0.0)
        elif ref != before and self.allocations.used_by(ref.uid):
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
            self._set(ref, self._causes_to_act_on(ref) if is_there else {}, tick)
            if is_there and had and not self._causes_of(ref):
                cancelled.append(ref)
            self._held_back.discard(ref)
        if self.guard is not None and not self._is_dirty:
            self._judge(self.guard)
        return cancelled

    @property
    def is_current(self) -> bool:
        """Whether `plan` has nothing left to do."""
        return not self._is_dirty and (self.guard is None or self.guard.is_sure)

    @property
    def _is_dirty(self) -> bool:
        return bool(self._events or self._dirty_devices or self._dirty_claims or self._dirty_pods)

    def take(self, now: float, tick: float) -> list[Taken[PodRef]]:
        """The pods to evict now. Each stays pending until it is gone, or `evicted` or `put_pod` says so."""
        taken = self._evictions.take(now, tick)
        if not self.is_current:
            # A rule that is gone must not evict while `plan` is on its way through those that it hit.
            taken = [each for each in taken if self._is_due(each.pod, now)]
        if self.guard is not None:
            for each in taken:
                self.guard.mark_going(each.pod, is_so=True)
        return taken

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

    def postpone(self, taken: Taken[PodRef], until: float) -> None:
        """A pod that was taken does not leave before some time; then it is taken again."""
        self._evictions.postpone(taken, until)
        if self.guard is not None:
            self.guard.mark_going(taken.pod, is_so=False)
        self._tally.changed |= {cause.rule for cause in self.causes(taken.pod).values() if cause.rule is not None}

    def exempt(self, pod: PodRef) -> None:
        """A pod that was taken does not leave for its causes at all."""
        causes = self._causes_of(pod)
        if causes:
            self._exempt[pod] = causes
            if self.guard is not None:
                self.guard.mark_going(pod, is_so=False)
            self._set(pod, {}, 0.0)

    def recall(self, pod: PodRef) -> None:
        """A pod that was put off or exempted is to be taken again: it has changed."""
        self._evictions.recall(pod)
        if self._exempt.pop(pod, None) is not None:
            self._dirty_pods[pod] = None

    def is_put_off(self, pod: PodRef) -> bool:
        """Whether a pod was put off or exempted, and `recall` would do something."""
        return pod in self._evictions.postponed or pod in self._exempt

    def devices_for(self, pod: PodRef, taint: TaintKey) -> tuple[DeviceId, ...]:
        """The devices with a taint that a pod uses."""
        held = [device for key in self.allocations.used_by(pod.uid) for device in self.allocations.devices(key)]
        return tuple(device for device in held if any(self.key_of(one) == taint for one in self._taints_on(device)))

    def causes(self, pod: PodRef) -> Causes:
        """Why a pod must leave; nothing if it may stay."""
        return self._evictions.causes(pod)

    @property
    def pending(self) -> int:
        """How many pods must leave, now or later."""
        return len(self._evictions)

    @property
    def active(self) -> int:
        """How many taints are rationed or pods pending now: zero when there is nothing to do (5055-94)."""
        return len(self._evictions) + self._evictions.active_limiters

    def progress(self, rule: str) -> Progress:
        """How far a rule is."""
        found = self._tally.progress(rule)
        postponed = [self._evictions.causes(pod) for pod in self._evictions.postponed]
        waiting, kept = (_count_with(rule, of) for of in (postponed, self._exempt.values()))
        return found._replace(waiting=waiting, kept=kept)

    def hold_of(self, rule: DeviceTaintRule) -> Hold | None:
        """What of a rule is held until somebody confirms it."""
        return None if self.guard is None else self.guard.hold_of(rule)

    def take_changed_rules(self) -> set[str]:
        """The rules that have changed or made progress since the last call."""
        if not self._tally.changed:
            return set()
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
        if not self._with_rules:
            events = [event for event in events if not is_rule(event)]
        pools = self.tracker.apply_all(events).pools
        named: set[DeviceId] = set()
        for event in events:
            named |= self._note_rule(event)
            self._note_slice(event)
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
        if self.guard is not None:
            self.guard.rule_changed(before, after)
        is_same = before is not None and after is not None and before.metadata.uid == after.metadata.uid
        if not is_same:
            self._tally.forget(name)
        elif _say_the_same(before, after):
            return set()
        self._tally.changed.add(name)
        either = [rule for rule in (before, after) if rule is not None]
        return {device for device in self._unpublished if any(names_device(rule, device) for rule in either)}

    def _note_slice(self, event: Event) -> None:
        """Who confirms what drivers want is written on slices."""
        if self.guard is None:
            return
        if isinstance(event, Remove):
            if event.kind == "ResourceSlice":
                self.guard.slice_changed(event.name, None)
        elif isinstance(event.object, ResourceSlice):
            self.guard.slice_changed(event.object.metadata.name, event.object)

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
        if any(cause.due <= now for cause in self._allowed(self._causes_to_act_on(pod)).values()):
            return True
        self._set(pod, {}, 0.0)
        self._held_back.add(pod)
        self._dirty_pods[pod] = None
        return False

    def _judge(self, guard: DeviceGuard) -> None:
        for pod in guard.judge(self.allocations.consumers, self.rules):
            self._dirty_pods[pod] = None
            self._tally.changed |= {cause.rule for cause in guard.wanted(pod).values() if cause.rule is not None}

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

    def _causes_to_act_on(self, pod: PodRef) -> Causes:
        """The causes for a pod to leave, unless just these were exempted."""
        causes = self._causes_of(pod)
        exempt = self._exempt.get(pod)
        if exempt is None:
            return causes
        if exempt == causes:
            return {}
        del self._exempt[pod]
        return causes

    def _allowed(self, causes: Causes) -> Causes:
        return causes if self.guard is None else self.guard.allowed(causes)

    def _set(self, pod: PodRef, causes: Causes, tick: float) -> None:
        before = self._evictions.causes(pod)
        if self.guard is None:
            if before != causes:
                self._evictions.set(pod, causes, tick)
                self._tally.move(pod, before, causes)
            return
        wanted = self.guard.wanted(pod)
        allowed = self.guard.want(pod, causes)
        if before != allowed:
            self._evictions.set(pod, allowed, tick)
        if wanted != causes:
            self._tally.move(pod, wanted, causes)


def is_rule(event: Event) -> bool:
    """Whether an event is about a DeviceTaintRule."""
    if isinstance(event, Remove):
        return event.kind == "DeviceTaintRule"
    return isinstance(event.object, DeviceTaintRule)


def _say_the_same(one: DeviceTaintRule | None, other: DeviceTaintRule | None) -> bool:
    """Whether two versions of a rule ask for the same, in the spec and in annotations."""
    if one is None or other is None:
        return one is other
    return one.spec == other.spec and taint_of(one) == taint_of(other)


def _count_with(rule: str, of: Iterable[Causes]) -> int:
    return sum(any(cause.rule == rule for cause in causes.values()) for causes in of)


def _pop(waiting: OrderedDict[T, None], limit: int) -> list[T]:
    """Takes the first few. In a plain dict, finding the first passes over all that were taken before."""
    return [waiting.popitem(last=False)[0] for _ in range(min(limit, len(waiting)))]
