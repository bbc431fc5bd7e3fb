"""From slices, rules and claims to the causes for which pods must leave claims. Only what an event changes is computed.

slices, rules, … ─▶ note ─▶ update(): devices whose taints changed ─▶ claims that hold them ─▶ their causes
claims ─▶ put_claim ───────┘                                                                   │ changed
                                                                      pods that use them ◀─────┘
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from dray.api.generated.scheduling import PodGroup
from dray.api.references import ObjectName, ObjectRef
from dray.api.resource import DeviceTaintRule, ResourceClaim, ResourceSlice
from dray.api.resource.rule_annotations import taint_of
from dray.eviction.allocations import Allocations, devices_of
from dray.eviction.causes import Cause, Causes, Source, TaintKey, find_causes, names_device
from dray.eviction.device_taints import DeviceTaints, Taints
from dray.eviction.pending import Pending
from dray.tracker import Change, DeviceId, Event, GatheredSlices, Remove, TrackedTaint, Tracker, Upsert


class RuleChange(NamedTuple):
    """A rule before and after an event; None if there was or is none of that name."""

    name: str
    before: DeviceTaintRule | None
    after: DeviceTaintRule | None

    @property
    def is_same_rule(self) -> bool:
        """Whether it is the same rule, whatever it says now."""
        return (
            self.before is not None and self.after is not None and self.before.metadata.uid == self.after.metadata.uid
        )

    @property
    def says_the_same(self) -> bool:
        """Whether the same rule asks for the same, in the spec and in annotations."""
        if self.before is None or self.after is None or not self.is_same_rule:
            return False
        return self.before.spec == self.after.spec and taint_of(self.before) == taint_of(self.after)


class ClaimCauses:
    """The causes of every allocated claim, kept up to date. `touched` collects the pods whose causes may be others."""

    def __init__(self, tracker: Tracker, *, with_rules: bool) -> None:
        """`tracker` is fed here; without `with_rules` rules are passed over (SVS-14)."""
        self.tracker = tracker
        self.allocations = Allocations()
        self.rules: dict[str, DeviceTaintRule] = {}
        self.touched: Pending[ObjectRef] = Pending()
        self._with_rules = with_rules
        self._taints = DeviceTaints(tracker)
        self._known: dict[DeviceId, Taints] = {}
        self.unpublished: set[DeviceId] = set()
        """The devices that are allocated but not published."""
        self._causes: dict[ObjectName, Causes] = {}
        self._left_behind: dict[str, Causes] = {}
        """What pods have to leave for because others of their group, which leaves as a whole, already had to."""
        self._events: list[Event] = []
        self._slices = GatheredSlices(tracker)
        self._dirty_devices: Pending[DeviceId] = Pending()
        self._dirty_claims: Pending[ObjectName] = Pending()

    @property
    def is_dirty(self) -> bool:
        """Whether there is something to apply or to update, or pods were touched."""
        is_waiting = self._events or self._slices or self.tracker.is_behind
        return bool(is_waiting or self._dirty_devices or self._dirty_claims or self.touched)

    @property
    def knows_all_devices(self) -> bool:
        """Whether every slice that was noted has been taken in, and what rules and patches say counts on all."""
        return not self._slices and not self.tracker.is_behind

    def note(self, event: Event) -> None:
        """A slice, rule, class or patch has changed. Takes effect with the next `apply_events`."""
        if _is_of_slice(event):
            self._slices.add(event)
        else:
            self._events.append(event)

    def put_claim(self, key: ObjectName, claim: ResourceClaim | None) -> bool:
        """A claim has changed, or (None) is gone. Whether there may be something to update since."""
        before = self.allocations.claims.get(key)
        after = claim if claim is not None and claim.status.allocation is not None else None
        if before is None and after is None:
            return False
        devices = self.allocations.put_claim(key, before, after)
        self._look_at(devices)
        if key in self._causes or any(map(self._known.get, devices)):
            self._dirty_claims.add(key)
            self.touched.extend(filter(None, map(self.allocations.pod, self.allocations.reached(before, after))))
            return True
        return bool(self._dirty_claims)

    def apply_events(self) -> tuple[list[RuleChange], list[Event]]:
        """Takes in what was noted, of slices some at a time. Returns how rules changed, and the events themselves.

        All that there is comes at once when somebody starts; what rules and patches say counts before any slice. What
        they say takes effect on some devices at a time.
        """
        if self.tracker.is_behind:
            self._take_in(self.tracker.go_on())
        if not self._events and not self._slices:
            return [], []
        events, self._events = [*self._events, *self._slices.take()], []
        if not self._with_rules:
            events = [event for event in events if _rule_of(event) is None]
        applied = self.tracker.apply_all(events)
        changes = [change for event in events if (change := self._note_rule(event)) is not None]
        named = sorted({device for change in changes for device in self._named_by(change)})
        self._dirty_devices.extend(named)
        self._take_in(applied)
        # A rule of the same name may be another one now, which no taint tells on devices that are not published.
        self._dirty_claims.extend(key for device in named for key in self.allocations.holders(device))
        return changes, events

    def resume(self) -> None:
        """Takes in what selectors that take long have come to on further devices."""
        if not self.tracker.is_complete:
            self._take_in(self.tracker.resume())

    def update(self, limit: int) -> None:
        """Brings up to so many devices and claims up to date."""
        self._look_at(self._dirty_devices.take(limit))
        for key in self._dirty_claims.take(limit):
            self._update_claim(key)

    def refresh(self, pod: ObjectRef) -> Causes:
        """The causes of a pod as they are at this moment, whatever is still to be updated."""
        for key in self.allocations.used_by(pod.uid):
            self._look_at(dict.fromkeys(devices_of(self.allocations.claims[key])))
            self._update_claim(key)
        return self.of(pod)

    def of(self, pod: ObjectRef) -> Causes:
        """The causes of all claims that a pod uses; of one taint on several the earliest."""
        found = [self._causes[key] for key in self.allocations.used_by(pod.uid) if key in self._causes]
        if pod.uid in self._left_behind:
            found.append(
                {
                    taint: cause
                    for taint, cause in self._left_behind[pod.uid].items()
                    if cause.rule is None or cause.rule in self.rules
                }
            )
        if len(found) <= 1:
            return found[0] if found else {}
        merged: dict[TaintKey, Cause] = {}
        for causes in found:
            for taint, cause in causes.items():
                if taint not in merged or cause.due < merged[taint].due:
                    merged[taint] = cause
        return merged

    def may_concern(self, pod: ObjectRef) -> bool:
        """Whether a pod has causes to leave, or claims with some. If not, claims tell when they have got one."""
        if not self._causes and not self._left_behind:
            return False
        return pod.uid in self._left_behind or any(key in self._causes for key in self.allocations.used_by(pod.uid))

    def put_group(self, name: ObjectName, group: PodGroup | None) -> None:
        """A group has changed, or (None) is gone."""
        uids = self.allocations.members.put_group(name, group)
        self.touched.extend(filter(None, map(self.allocations.pod, uids)))

    def leave_behind(self, pod: ObjectRef) -> None:
        """A pod is on its way out for its causes: those who leave with it go for the same, also when it is gone."""
        companions = self.allocations.members.companions(pod.uid)
        causes = self.of(pod) if companions else {}
        for uid in companions if causes else ():
            if uid != pod.uid:
                self._left_behind[uid] = {**self._left_behind.get(uid, {}), **causes}
        self._left_behind.pop(pod.uid, None)

    def forget(self, uid: str) -> None:
        """A pod is gone."""
        self._left_behind.pop(uid, None)

    def devices_for(self, pod: ObjectRef, taint: TaintKey) -> tuple[DeviceId, ...]:
        """The devices with a taint that a pod uses."""
        held = [device for key in self.allocations.used_by(pod.uid) for device in self.allocations.devices(key)]
        return tuple(device for device in held if any(self.key_of(one) == taint for one in self._taints_on(device)))

    def key_of(self, taint: TrackedTaint) -> TaintKey:
        """What evictions for a taint share a limiter by: of a rule, on whichever devices, all (5055-90)."""
        rule = self.rules.get(taint.rule) if taint.rule is not None else None
        return taint.id if rule is None else key_of_rule(rule)

    def _note_rule(self, event: Event) -> RuleChange | None:
        name = _rule_of(event)
        if name is None:
            return None
        after = event.object if isinstance(event, Upsert) and isinstance(event.object, DeviceTaintRule) else None
        before = self.rules.pop(name, None)
        if after is not None:
            self.rules[name] = after
        return RuleChange(name, before, after)

    def _named_by(self, change: RuleChange) -> Iterator[DeviceId]:
        """The unpublished devices that a rule names, before or after, if it is another one or says something else."""
        if change.says_the_same:
            return
        either = [rule for rule in (change.before, change.after) if rule is not None]
        for device in self.unpublished:
            if any(names_device(rule, device) for rule in either):
                yield device

    def _take_in(self, change: Change) -> None:
        pools = sorted(change.pools)  # in an order of their own: a day can be lived again
        self._taints.forget(pools)
        self._dirty_devices.extend(device for pool in pools for device in self.allocations.held_in(pool))

    def _look_at(self, devices: Iterable[DeviceId]) -> None:
        """Finds which taints are on allocated devices now; claims on devices where they differ need another look."""
        for device in devices:
            holders = self.allocations.holders(device)
            if not holders:
                self._known.pop(device, None)
                self.unpublished.discard(device)
                continue
            taints, is_published = self._taints.of(device, self.rules, self.allocations.nodes(holders))
            (self.unpublished.discard if is_published else self.unpublished.add)(device)
            if self._known.get(device, ()) != taints:
                self._dirty_claims.extend(holders)
            self._known[device] = taints

    def _update_claim(self, key: ObjectName) -> None:
        claim = self.allocations.claims.get(key)
        causes = {} if claim is None else find_causes(claim, self._taints_on, self.key_of)
        if causes == self._causes.get(key, {}):
            return
        if causes:
            self._causes[key] = causes
        else:
            del self._causes[key]
        self.touched.extend(self.allocations.users(key))

    def _taints_on(self, device: DeviceId) -> Taints:
        return self._known.get(device, ())


def key_of_rule(rule: DeviceTaintRule) -> TaintKey:
    """What evictions for a rule share."""
    return rule.metadata.uid or rule.metadata.name


def source_of_rule(rule: DeviceTaintRule) -> Source:
    """What somebody confirms who means a rule."""
    return Source(str(key_of_rule(rule)))


def _is_of_slice(event: Event) -> bool:
    return event.kind == "ResourceSlice" if isinstance(event, Remove) else isinstance(event.object, ResourceSlice)


def _rule_of(event: Event) -> str | None:
    """The name of the rule that an event is about; None if it is about something else."""
    if isinstance(event, Remove):
        return event.name if event.kind == "DeviceTaintRule" else None
    return event.object.metadata.name if isinstance(event.object, DeviceTaintRule) else None
