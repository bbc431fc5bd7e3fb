"""From devices, claims and pods to evictions. Events and the time go in; pods to delete come out. No I/O.

slices, rules, … ─▶ note ──┐
claims ─▶ put_claim ───────┴─▶ ClaimCauses ─▶ pods whose causes changed ─▶ plan(): Departures ─▶ take(): due, and
pods ─▶ put_pod ─────────────────────────────────┘                                              let go by a limiter
"""

from __future__ import annotations

from collections.abc import Mapping

from dray.api.conditions import DISRUPTION_TARGET, is_true
from dray.api.generated.core import Pod
from dray.api.generated.scheduling import PodGroup
from dray.api.pod_claims import uses_devices
from dray.api.references import ObjectName, ObjectRef
from dray.api.resource import DeviceTaintRule, ResourceClaim, ResourceSlice
from dray.api.resource.pool import PoolKey
from dray.eviction.allocations import Allocations
from dray.eviction.causes import Cause, Source, TaintKey
from dray.eviction.claim_causes import ClaimCauses, RuleChange, key_of_rule, source_of_rule
from dray.eviction.confirmations import PoolConfirmations, is_confirmed
from dray.eviction.departures import Departures, Unasked
from dray.eviction.evictions import Taken
from dray.eviction.guard import Base, Guard, Hold
from dray.eviction.pods import can_be_evicted
from dray.eviction.recent import Recent
from dray.eviction.settings import Limit
from dray.eviction.tally import Progress
from dray.tracker import DeviceId, Event, Problem, Remove, TrackedTaint, Tracker


class DevicePlanner:
    """All that eviction because of device taints needs to know."""

    def __init__(
        self,
        tracker: Tracker | None = None,
        *,
        taint_rules: bool = True,
        max_evictions: Limit | None = None,
        recent: Recent[ObjectRef] | None = None,
    ) -> None:
        """`tracker` carries the feature switches, and is fed here; without `taint_rules` there are none (SVS-14).

        If more than `max_evictions` would leave, the rest is held; `recent` may be shared with other planners.
        """
        self.tracker = tracker or Tracker(taint_rules=taint_rules)
        self.departures = Departures(None if max_evictions is None else Guard(max_evictions, recent))
        self._causes = ClaimCauses(self.tracker, with_rules=taint_rules)
        self._confirmations = PoolConfirmations()
        self._cancelled: list[ObjectRef] = []
        self._are_holds_new = False
        self._base = Base(0)
        self._tick = float("-inf")

    @property
    def allocations(self) -> Allocations:
        """Who uses what."""
        return self._causes.allocations

    @property
    def rules(self) -> Mapping[str, DeviceTaintRule]:
        """The rules by name."""
        return self._causes.rules

    def note(self, event: Event) -> None:
        """A slice, rule, class or patch has changed. Takes effect with the next `plan`."""
        self._causes.note(event)

    def resume(self) -> None:
        """Selectors that take long were evaluated on further devices. Takes effect with the next `plan`."""
        self._causes.resume()

    def put_claim(self, key: ObjectName, claim: ResourceClaim | None) -> bool:
        """A claim has changed, or (None) is gone. Whether that may concern somebody who is to leave, or some rule."""
        return self._causes.put_claim(key, claim) or not self.departures.is_idle

    def put_pod(self, pod: Pod, *, is_gone: bool = False) -> bool:
        """A pod has changed, or is gone. Whether that may concern somebody who is to leave, or some rule."""
        allocations = self._causes.allocations
        before = allocations.pod(pod.metadata.uid)
        if before is None and (is_gone or not can_be_evicted(pod)):
            allocations.put_pod(pod, is_gone=is_gone)
            members = allocations.members.companions(pod.metadata.uid)
            self._causes.touched.extend(filter(None, map(allocations.pod, members)))
            return True
        if before is not None and pod.metadata.deletion_timestamp is not None:
            if is_true(pod.status.conditions, DISRUPTION_TARGET):
                self._causes.leave_behind(before)
            self._causes.forget(before.uid)
        ref = allocations.put_pod(pod, is_gone=is_gone)
        if before is None and self.departures.guard is not None and uses_devices(pod):
            self.departures.guard.note_arrival()
        if ref is None:
            self.departures.drop(ObjectRef.of(pod))
            return True
        is_concerned = ref != before and self._causes.may_concern(ref)
        if is_concerned:
            self._causes.touched.add(ref)
        return is_concerned or before is not None or not self.departures.is_idle

    def put_group(self, name: ObjectName, group: PodGroup | None) -> None:
        """A PodGroup has changed, or (None) is gone: its pods may have to leave all together."""
        self._causes.put_group(name, group)

    def plan(self, tick: float, limit: int = 500) -> list[ObjectRef]:
        """Brings up to `limit` devices, claims and pods up to date; `is_current` says whether that was all.

        Returns the pods that were to be evicted and may stay after all.
        """
        self._tick = max(self._tick, tick)
        self.departures.changed_places.clear()  # pools have no status to tell it in
        changes, events = self._causes.apply_events()
        for change in changes:
            self._note_rule(change)
        for event in events:
            self._note_slice(event)
        self._causes.update(limit)
        for ref in self._causes.touched.take(limit):
            if self.allocations.pod(ref.uid) is None:
                self.departures.drop(ref)
            elif self.departures.want(ref, self._causes.of(ref), tick):
                self._cancelled.append(ref)
        if not self._causes.is_dirty:
            self._base = self.allocations.base
            if changed := self.departures.judge(tick, self._base):
                told = (name for name, rule in self.rules.items() if source_of_rule(rule) in changed)
                self.departures.tally.changed.update(told)
                self._are_holds_new = True
            self.departures.settle(limit)
        cancelled, self._cancelled = self._cancelled, []
        return cancelled

    @property
    def is_current(self) -> bool:
        """Whether `plan` has nothing left to do."""
        return not self._causes.is_dirty and self._is_judged and self.departures.is_settled and not self._cancelled

    @property
    def _is_judged(self) -> bool:
        """Whether the guard knows of how many pods a limit is a share."""
        return self.departures.is_idle or self._base == self.allocations.base

    def take(self, now: float, tick: float) -> list[Taken[ObjectRef]]:
        """The pods to evict now. Each stays pending until it is gone, or `departures` are told what became of it.

        None while slices are still taken in, or rules: one of them may take a taint away.
        """
        if not self._causes.knows_all_devices:
            return []
        taken = self.departures.take(now, tick)
        if not self.is_current:
            # A rule that is gone must not evict while `plan` is on its way through those that it hit.
            taken = [each for each in taken if self._is_due(each, now)]
        self.departures.start(taken)
        return taken

    def must_leave(self, pod: ObjectRef) -> bool:
        """Whether a pod that was taken still has to go, also where `plan` has not come to it yet."""
        if not self.is_current:
            self._look_again(pod)
        return self.departures.must_leave(pod)

    def wait(self, now: float, tick: float) -> float | None:
        """After how many seconds `take` may have something; None if nothing is planned."""
        return self.departures.wait(now, tick)

    def devices_for(self, pod: ObjectRef, taint: TaintKey) -> tuple[DeviceId, ...]:
        """The devices with a taint that a pod uses."""
        return self._causes.devices_for(pod, taint)

    @property
    def pending(self) -> int:
        """How many pods must leave and may, now or later."""
        return len(self.departures)

    @property
    def active(self) -> int:
        """How many taints are rationed or pods pending now: zero when there is nothing to do (5055-94)."""
        return len(self.departures) + self.departures.active_limiters

    def progress(self, rule: str) -> Progress:
        """How far a rule is."""
        return self.departures.progress(rule)

    def hold_of(self, rule: DeviceTaintRule) -> Hold | None:
        """What of a rule is held until somebody confirms it."""
        return self.departures.hold_of(source_of_rule(rule))

    def unasked(self, rule: DeviceTaintRule) -> Unasked | None:
        """The pods of a rule that stay because their policy could not be asked."""
        return self.departures.unasked((source_of_rule(rule),))

    def take_held_pools(self) -> dict[PoolKey, tuple[Cause, Hold]] | None:
        """What is held of taints that drivers published, by pool, each with one of the taints.

        None if it is what it was when it was taken before.
        """
        if not self._are_holds_new:
            return None
        self._are_holds_new = False
        return {cause.source: (cause, hold) for cause, hold in self.departures.held() if cause.rule is None}

    def take_changed_rules(self) -> set[str]:
        """The rules that have changed or made progress since the last call."""
        tally = self.departures.tally
        if not tally.changed:
            return set()
        changed, tally.changed = tally.changed, set()
        return changed & self.rules.keys()

    @property
    def problems(self) -> list[Problem]:
        """Selectors of rules and patches that fail."""
        return self.tracker.problems

    @property
    def unpublished(self) -> frozenset[DeviceId]:
        """The devices that are allocated but not published."""
        return frozenset(self._causes.unpublished)

    def key_of(self, taint: TrackedTaint) -> TaintKey:
        """What evictions for a taint share a limiter by: of a rule, on whichever devices, all (5055-90)."""
        return self._causes.key_of(taint)

    def _is_due(self, taken: Taken[ObjectRef], now: float) -> bool:
        """Looks again whether a pod that was taken must leave now; if not, it waits for its time again."""
        self._look_again(taken.pod)
        return self.departures.is_due(taken, now)

    def _look_again(self, pod: ObjectRef) -> None:
        if self.departures.want(pod, self._causes.refresh(pod), self._tick):
            self._cancelled.append(pod)

    def _note_rule(self, change: RuleChange) -> None:
        tally, guard = self.departures.tally, self.departures.guard
        after = change.after
        tally.set_rule(change.name, None if after is None else key_of_rule(after))
        if not change.says_the_same and after is not None:
            tally.changed.add(change.name)
        if guard is None:
            return
        if change.before is not None and not change.is_same_rule:
            guard.confirm(source_of_rule(change.before), is_so=False, tick=self._tick)
            guard.mark_sweeping(source_of_rule(change.before), is_so=False)
        if after is not None:
            selector = after.spec.device_selector
            guard.mark_sweeping(source_of_rule(after), is_so=selector is not None and selector.is_empty)
            if change.before is not None and change.before.metadata.generation != after.metadata.generation:
                guard.renew(source_of_rule(after), self._tick)
            if guard.is_confirmed(source_of_rule(after)) != is_confirmed(after):
                tally.changed.add(change.name)
            guard.confirm(source_of_rule(after), is_so=is_confirmed(after), tick=self._tick)

    def _note_slice(self, event: Event) -> None:
        """Who confirms what drivers want is written on slices."""
        guard = self.departures.guard
        if guard is None:
            return
        pools: Mapping[PoolKey, bool] = {}
        if isinstance(event, Remove):
            if event.kind == "ResourceSlice":
                pools = self._confirmations.put(event.name, None)
        elif isinstance(event.object, ResourceSlice):
            pools = self._confirmations.put(event.object.metadata.name, event.object)
        for pool, is_so in pools.items():
            guard.confirm(Source(*pool), is_so=is_so, tick=self._tick)
