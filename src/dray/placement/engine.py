"""Many placements, kept decided while the fleet changes.

    engine = Engine()
    results = engine.load(objects, now)          # everything, from scratch
    results = engine.apply(event, now)           # only what the event changes
    results = engine.due(now)                    # what time has changed; call it at `next_due`

Results are instructions: whoever holds the engine writes them. The engine takes its own decisions as made; if the API
shows others it hands out its result again, so that it gets written again.

Other placements' decisions count for the Balance score when a placement is decided, but do not cause it to be decided.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from dray.api.cluster import Placement
from dray.api.cluster.placement import DISABLE_ANNOTATION
from dray.api.references import ObjectName
from dray.placement.decide import decide, find_requeue, with_explanation
from dray.placement.explain import Explanation
from dray.placement.fleet import (
    BindingChange,
    DecisionChange,
    Event,
    Fleet,
    FleetObject,
    MemberChange,
    ScoreChange,
    SetChange,
)
from dray.placement.groups import Group, divide, flatten
from dray.placement.impact import Assessment, Impact, Shift
from dray.placement.moments import Moment, earliest, moment_of
from dray.placement.policy import Policy, read_policy
from dray.placement.result import PlacementResult
from dray.placement.summary import summarize
from dray.placement.tolerations import judge

Results = dict[ObjectName, PlacementResult]


@dataclass(slots=True)
class _Entry:
    placement: Placement
    policy: Policy
    shape: int
    """The same for policies with equal predicates and tolerations."""
    result: PlacementResult | None = None


class _Amendment:
    """One cluster that comes into or goes from single groups; those that are shared are changed once."""

    def __init__(self, cluster: str, now: Moment) -> None:
        self.cluster = cluster
        self.now = now
        self._made: dict[tuple[int, bool], tuple[tuple[Group, ...], tuple[Group, ...]]] = {}

    def with_one(self, groups: tuple[Group, ...], added: bool) -> tuple[Group, ...]:
        """The groups with the cluster added or removed. The old ones are kept with the new: an id names no other."""
        found = self._made.get((id(groups), added))
        if found is None:
            changed = (Group(0, "", _with(flatten(groups), self.cluster, added)),)
            found = self._made[id(groups), added] = (groups, changed)
        return found[1]


class Engine:
    """A fleet and the decisions of all its placements."""

    def __init__(self) -> None:
        self.fleet = Fleet()
        self._entries: dict[ObjectName, _Entry] = {}
        self._by_namespace: dict[str, dict[ObjectName, _Entry]] = {}
        self._shapes: dict[object, int] = {}
        self._alike: dict[int, tuple[Group, ...]] = {}

    def load(self, objects: Iterable[FleetObject], now: dt.datetime) -> Results:
        """Take in many objects at once, then decide every placement, in the order of their names."""
        for obj in objects:
            if isinstance(obj, Placement):
                self._put(obj)
            else:
                self.fleet.apply(Event(obj))
        return self._decide([self._entries[key] for key in sorted(self._entries)], moment_of(now))

    def apply(self, event: Event, now: dt.datetime) -> Results:
        """Take in one event; hands out the results that it changed."""
        moment = moment_of(now)
        if isinstance(event.obj, Placement):
            return self._apply_placement(event.obj, event.deleted, moment)
        match self.fleet.apply(event):
            case MemberChange() as change:
                return self._apply_member(change, moment)
            case SetChange(name):
                return self._decide(self._in_namespaces(self.fleet.namespaces_of(name)), moment)
            case BindingChange(namespace):
                return self._decide(self._in_namespaces((namespace,)), moment)
            case ScoreChange() as change:
                return self._decide(self._scored_by(change), moment)
            case DecisionChange(placements):
                return self._restate(placements, moment)
        return {}

    def due(self, now: dt.datetime) -> Results:
        """Decide the placements whose time has come."""
        moment = moment_of(now)
        return self._decide([entry for entry in self._entries.values() if _is_due(entry, moment)], moment)

    @property
    def next_due(self) -> Moment | None:
        """When `due` has something to do next, in microseconds since 1970."""
        return earliest(*(entry.result.requeue_at for entry in self._entries.values() if entry.result is not None))

    def placements(self) -> Iterable[ObjectName]:
        """All placements."""
        return self._entries.keys()

    def wanted(self, placement: ObjectName) -> int | None:
        """How many clusters a placement asks for; None: all that it can have."""
        return self._entries[placement].policy.count

    def tolerated_until(self, placement: ObjectName, cluster: str, now: dt.datetime) -> Moment | None:
        """When the first toleration that keeps a decided cluster in runs out; None if none does."""
        taints = self.fleet.members[cluster].taints
        return judge(taints, self._entries[placement].policy.tolerations, True, moment_of(now)).until

    def result(self, placement: ObjectName) -> PlacementResult | None:
        """A placement's result in force."""
        entry = self._entries.get(placement)
        return entry.result if entry is not None else None

    def explain(self, placement: ObjectName, now: dt.datetime) -> Explanation | None:
        """Why a placement's decisions are what they are; None if there is no such placement."""
        entry = self._entries.get(placement)
        if entry is None or entry.result is None:
            return None
        trace, result = decide(self.fleet, entry.policy, moment_of(now), score_all=True)
        trace.selected = entry.result.decisions
        return with_explanation(trace, result).explanation

    def summary(self, placement: ObjectName, now: dt.datetime) -> str | None:
        """One bounded sentence on why the decisions are what they are; None if there is nothing to choose from."""
        entry = self._entries.get(placement)
        if entry is None or entry.result is None:
            return None
        trace, _ = decide(self.fleet, entry.policy, moment_of(now))
        if trace.held is not None or not trace.available:
            return None
        trace.selected = entry.result.decisions
        text = summarize(trace)
        return text[0].upper() + text[1:]

    def _apply_placement(self, placement: Placement, deleted: bool, now: Moment) -> Results:
        key = ObjectName(placement.metadata.namespace, placement.metadata.name)
        if deleted:
            self._entries.pop(key, None)
            self._by_namespace.get(key.namespace, {}).pop(key, None)
            self.fleet.ledger.release(key)
            return {}
        return self._decide([self._entries[key]], now) if self._put(placement) else {}

    def _put(self, placement: Placement) -> bool:
        """Keep a placement; tells whether what it asks for is new."""
        key = ObjectName(placement.metadata.namespace, placement.metadata.name)
        entry = self._entries.get(key)
        if entry is not None and _asks_the_same(entry.placement, placement):
            entry.placement = placement
            return False
        policy = read_policy(placement)
        shape = self._shapes.setdefault((policy.predicates, policy.tolerations), len(self._shapes))
        entry = _Entry(placement, policy, shape, entry.result if entry is not None else None)
        self._entries[key] = entry
        self._by_namespace.setdefault(key.namespace, {})[key] = entry
        return True

    def _in_namespaces(self, namespaces: Iterable[str]) -> list[_Entry]:
        """All placements there: even one that wants none of the sets says whether any is bound."""
        return [entry for namespace in namespaces for entry in self._by_namespace.get(namespace, {}).values()]

    def _choosing_from(self, sets: Iterable[str]) -> Iterator[_Entry]:
        """The placements that choose from any of these sets."""
        seen: set[ObjectName] = set()
        for name in sets:
            for namespace in self.fleet.namespaces_of(name):
                for key, entry in self._by_namespace.get(namespace, {}).items():
                    if key not in seen and entry.policy.wants_set(name):
                        seen.add(key)
                        yield entry

    def _scored_by(self, change: ScoreChange) -> list[_Entry]:
        """The placements for which an add-on's score of a cluster counts."""
        return [
            entry
            for entry in self._choosing_from(self.fleet.sets_of(change.cluster))
            if entry.policy.needs_scores and change.resource in entry.policy.add_ons
        ]

    def _apply_member(self, change: MemberChange, now: Moment) -> Results:
        results: Results = {}
        assessment = Assessment(self.fleet, change, now)
        amendment = _Amendment(change.name, now)
        for entry in self._choosing_from(change.old_sets | change.new_sets):
            assert entry.result is not None
            shift = assessment.assess(entry.policy, entry.shape, entry.result)
            if shift.impact is Impact.NOTHING:
                continue
            if shift.impact is Impact.DECIDE:
                results |= self._decide([entry], now)
            elif self._amend(entry, shift, amendment):
                results[entry.policy.placement] = entry.result
        return results

    def _amend(self, entry: _Entry, shift: Shift, amendment: _Amendment) -> bool:
        """Change a result by one cluster, or only its time to wake; tells whether it has changed."""
        old = entry.result
        assert old is not None
        groups = self._regroup(entry, shift, amendment)
        requeue_at = old.requeue_at
        if shift.before.until is not None and shift.before.until == requeue_at:
            requeue_at = find_requeue(self.fleet, entry.policy, amendment.now)
        elif shift.after.until is not None:
            requeue_at = earliest(requeue_at, shift.after.until)
        if groups is old.groups and requeue_at == old.requeue_at:
            return False
        entry.result = replace(old, decisions=flatten(groups), groups=groups, now=amendment.now, requeue_at=requeue_at)
        return True

    def _regroup(self, entry: _Entry, shift: Shift, amendment: _Amendment) -> tuple[Group, ...]:
        """The groups after one cluster has come, gone or taken another's place; also notes it in the ledger."""
        assert entry.result is not None
        policy, ledger, cluster = entry.policy, self.fleet.ledger, amendment.cluster
        match shift.impact:
            case Impact.ADD | Impact.REMOVE:
                added = shift.impact is Impact.ADD
                ledger.assume_one(policy.placement, cluster, added)
                return amendment.with_one(entry.result.groups, added)
            case Impact.SWAP:
                assert shift.displaced is not None
                ledger.assume_one(policy.placement, shift.displaced, False)
                ledger.assume_one(policy.placement, cluster, True)
                return divide(policy.groups, ledger.decided(policy.placement), self.fleet)
        return entry.result.groups

    def _decide(self, entries: Iterable[_Entry], now: Moment) -> Results:
        results: Results = {}
        for entry in entries:
            key = entry.policy.placement
            _, result = decide(self.fleet, entry.policy, now)
            if result.held is None:
                self.fleet.ledger.assume(key, result.decisions)
            else:
                self.fleet.ledger.release(key)
            if entry.result is None or not result.same_outcome(entry.result):
                results[key] = result
            entry.result = self._share(entry, result)
        return results

    def _share(self, entry: _Entry, result: PlacementResult) -> PlacementResult:
        """The result with the very groups of another that took the same clusters: then both are amended at once."""
        if entry.policy.needs_scores or not entry.policy.groups.single:
            return result
        alike = self._alike.setdefault(entry.shape, result.groups)
        if alike != result.groups:
            self._alike[entry.shape] = result.groups
            return result
        return replace(result, groups=alike, decisions=flatten(alike))

    def _restate(self, placements: tuple[ObjectName, ...], now: Moment) -> Results:
        """The API shows other decisions: say again what ours are, unless the placement is not ours to decide."""
        results: Results = {}
        ledger = self.fleet.ledger
        for key in placements:
            entry = self._entries.get(key)
            if entry is None or entry.result is None:
                continue
            if entry.result.held is not None:
                results |= self._decide([entry], now)
            elif ledger.observed_clusters(key) != ledger.decided(key):
                results[key] = entry.result
        return results


def _is_due(entry: _Entry, now: Moment) -> bool:
    return entry.result is not None and entry.result.requeue_at is not None and entry.result.requeue_at <= now


def _asks_the_same(old: Placement, new: Placement) -> bool:
    """Whether a changed placement still asks for the same clusters."""
    return (
        old.spec == new.spec
        and old.metadata.deletion_timestamp == new.metadata.deletion_timestamp
        and old.metadata.annotations.get(DISABLE_ANNOTATION) == new.metadata.annotations.get(DISABLE_ANNOTATION)
    )


def _with(decisions: tuple[str, ...], cluster: str, added: bool) -> tuple[str, ...]:
    """Decisions by name, with a cluster added or removed."""
    at = bisect_left(decisions, cluster)
    return (*decisions[:at], cluster, *decisions[at:]) if added else decisions[:at] + decisions[at + 1 :]
