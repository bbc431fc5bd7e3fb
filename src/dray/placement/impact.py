"""What a changed cluster can do to a placement that is decided already.

The point is to answer "nothing" quickly: most placements do not care about most changes, and those that do often
need one cluster added or removed instead of a new decision. A placement is decided anew only if its decisions could
become others, so that they change as little as possible.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import NamedTuple

from dray.placement.amounts import Extremes
from dray.placement.case import PlacementCase
from dray.placement.fleet import Fleet, MemberChange
from dray.placement.lightest import find_heavier
from dray.placement.member import Member
from dray.placement.moments import Moment
from dray.placement.policy import Policy
from dray.placement.result import PlacementResult
from dray.placement.select import rank, score
from dray.placement.tolerations import UNTAINTED, Standing, judge


class Impact(Enum):
    """What has to be done about a change, from least to most."""

    NOTHING = auto()
    WAKE_TIME = auto()
    """The decisions stay, the time to look again may be another."""
    ADD = auto()
    """The cluster joins the decisions, all else stays."""
    REMOVE = auto()
    """The cluster leaves the decisions, all else stays."""
    SWAP = auto()
    """The cluster takes the place of the worst one in the decisions."""
    DECIDE = auto()
    """The placement has to be decided anew."""


class Footing(NamedTuple):
    """How far one cluster gets in the filters of one placement."""

    available: bool = False
    matched: bool = False
    standing: Standing | None = None

    @property
    def feasible(self) -> bool:
        """Whether the cluster passes them all."""
        return self.standing is not None and self.standing.repelled_by is None

    @property
    def until(self) -> Moment | None:
        """When the cluster's first toleration runs out."""
        return self.standing.until if self.standing is not None else None


_OUT = Footing()


class Shift(NamedTuple):
    """What to do, and a cluster's footing before and after a change."""

    impact: Impact
    before: Footing = _OUT
    after: Footing = _OUT
    displaced: str | None = None
    """Whose place the cluster takes (SWAP)."""


_NO_SHIFT = Shift(Impact.NOTHING)


class Assessment:
    """One changed cluster, looked at for many placements. What several of them see alike is worked out once."""

    def __init__(self, fleet: Fleet, change: MemberChange, now: Moment) -> None:
        self._fleet = fleet
        self._change = change
        self._now = now
        self._reaches: dict[tuple[str, frozenset[str]], tuple[bool, bool]] = {}
        self._footings: dict[tuple[int, bool, bool, bool], tuple[Footing, Footing]] = {}

    def assess(self, policy: Policy, shape: int, result: PlacementResult) -> Shift:
        """What the change means for a placement with this result.

        Policies with equal predicates and tolerations have the same `shape`, and no others.
        """
        if result.held is not None:
            return _NO_SHIFT
        name = self._change.name
        decided = name in self._fleet.ledger.decided(policy.placement)
        before, after = self._find_footings(policy, shape, decided)
        impact, displaced = self._weigh(policy, result, decided, before, after)
        return _NO_SHIFT if impact is Impact.NOTHING else Shift(impact, before, after, displaced)

    def _find_footings(self, policy: Policy, shape: int, decided: bool) -> tuple[Footing, Footing]:
        """Where the cluster stood and where it stands."""
        reach = self._find_reach(policy)
        key = (shape, *reach, decided)
        found = self._footings.get(key)
        if found is None:
            change = self._change
            before = self._find_footing(policy, change.old if reach[0] else None, decided)
            after = self._find_footing(policy, change.new if reach[1] else None, decided)
            found = self._footings[key] = (before, after)
        return found

    def _find_reach(self, policy: Policy) -> tuple[bool, bool]:
        """Whether the placement could choose from the cluster's sets, before and after."""
        key = (policy.placement.namespace, policy.cluster_sets)
        found = self._reaches.get(key)
        if found is None:
            change = self._change
            found = self._reaches[key] = (
                self._chooses_from(policy, change.old_sets),
                self._chooses_from(policy, change.new_sets),
            )
        return found

    def _chooses_from(self, policy: Policy, sets: frozenset[str]) -> bool:
        namespace = policy.placement.namespace
        return any(policy.wants_set(name) and self._fleet.is_bound(name, namespace) for name in sets)

    def _find_footing(self, policy: Policy, member: Member | None, decided: bool) -> Footing:
        """How far a cluster gets; None: it is not there, or out of reach."""
        if member is None:
            return _OUT
        if policy.predicates and not any(predicate.matches(member) for predicate in policy.predicates):
            return Footing(available=True)
        if not member.taints:
            return Footing(True, True, UNTAINTED)
        return Footing(True, True, judge(member.taints, policy.tolerations, decided, self._now))

    def _weigh(
        self, policy: Policy, result: PlacementResult, decided: bool, before: Footing, after: Footing
    ) -> tuple[Impact, str | None]:
        """What has to be done and, for a swap, who makes room."""
        if before.feasible and after.feasible and _changes_others(policy, self._change):
            return Impact.DECIDE, None
        if before == after:
            return Impact.NOTHING, None
        if policy.problems or not result.decisions:
            return Impact.DECIDE, None
        if policy.needs_scores:
            return self._weigh_ranked(policy, result, decided, before, after)
        return _weigh_all_taken(policy, result, decided, after), None

    def _weigh_ranked(
        self, policy: Policy, result: PlacementResult, decided: bool, before: Footing, after: Footing
    ) -> tuple[Impact, str | None]:
        """The best clusters are wanted: only a change among them, or one that gets among them, matters."""
        if decided:
            stays = after.feasible and not (policy.relative and not before.feasible)
            return (Impact.WAKE_TIME if stays else Impact.DECIDE), None
        if policy.count is None or len(result.decisions) < policy.count:
            return Impact.DECIDE, None
        if not before.feasible and not after.feasible:
            return Impact.NOTHING, None
        extremes = self._find_extremes(policy)
        if not _is_within(self._change.new if after.feasible else self._change.old, extremes):
            return Impact.DECIDE, None
        if not after.feasible:
            return Impact.WAKE_TIME, None
        case = PlacementCase.of(self._fleet, policy.placement, self._now)._replace(extremes=extremes)
        displaced = find_displaced(case, policy, self._change.name, after)
        if displaced is None:
            return Impact.WAKE_TIME, None
        return (Impact.DECIDE, None) if policy.by_score else (Impact.SWAP, displaced)

    def _find_extremes(self, policy: Policy) -> dict[str, Extremes | None]:
        """What the other clusters that a placement can have got least and most of, if its scores depend on that."""
        decided = self._fleet.ledger.decided(policy.placement)

        def counts(name: str) -> bool:
            return (
                name != self._change.name
                and self._chooses_from(policy, self._fleet.sets_of(name))
                and self._find_footing(policy, self._fleet.members[name], name in decided).feasible
            )

        return {resource: self._fleet.amounts.extremes(resource, counts) for resource in policy.resources}


def _is_within(member: Member | None, extremes: Mapping[str, Extremes | None]) -> bool:
    """Whether others have as little and as much as a cluster that comes or goes: then nobody else's score changes."""
    for resource, found in extremes.items():
        amount = member.allocatable.get(resource) if member is not None else None
        if amount is not None and (found is None or not found.least <= amount <= found.most):
            return False
    return True


def _changes_others(policy: Policy, change: MemberChange) -> bool:
    """Whether a cluster that stays feasible changes scores or groups."""
    old, new = change.old, change.new
    if old is None or new is None:
        return False
    if policy.needs_scores and policy.relative and old.allocatable != new.allocatable:
        return True
    return bool(policy.groups.named) and (old.labels != new.labels or old.claims != new.claims)


def _weigh_all_taken(policy: Policy, result: PlacementResult, selected: bool, after: Footing) -> Impact:
    """Every feasible cluster is wanted: the cluster comes, goes or stays."""
    if selected == after.feasible:
        return Impact.WAKE_TIME
    last = selected and len(result.decisions) == 1
    if last or not policy.groups.single:
        return Impact.DECIDE
    return Impact.REMOVE if selected else Impact.ADD


def find_displaced(case: PlacementCase, policy: Policy, name: str, footing: Footing) -> str | None:
    """The decided cluster that has to make room for an undecided one, if as many are decided as are wanted.

    None: the undecided one is not better than the worst of them, or a taint asks to avoid it.
    """
    if (footing.standing is not None and footing.standing.shunned_for is not None) or not case.decided:
        return None
    if policy.weights is not None:
        return find_heavier(case, policy.weights, name)
    totals = score(case, policy, case.decided | {name}).totals
    worst = rank(totals, ())[-1]
    return None if worst == name else worst
