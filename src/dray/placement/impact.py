"""What a changed cluster can do to a placement that is decided already.

The point is to answer "nothing" quickly: most placements do not care about most changes, and those that do often
need one cluster added or removed instead of a new decision. A placement is decided anew only if its decisions could
become others, so that they change as little as possible.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from dray.placement.fleet import MemberChange
from dray.placement.member import Member
from dray.placement.moments import Moment
from dray.placement.policy import Policy
from dray.placement.result import PlacementResult
from dray.placement.scene import Scene
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


def find_footing(scene: Scene, policy: Policy, member: Member | None, sets: frozenset[str]) -> Footing:
    """Where a cluster that belongs to `sets` stands; None: it does not exist."""
    if member is None or not _chooses_from(scene, policy, sets):
        return _OUT
    if policy.predicates and not any(predicate.matches(member) for predicate in policy.predicates):
        return Footing(available=True)
    if not member.marks:
        return Footing(True, True, UNTAINTED)
    decided = member.name in scene.decided
    return Footing(True, True, judge(member.marks, policy.tolerations, decided, scene.now))


def _chooses_from(scene: Scene, policy: Policy, sets: frozenset[str]) -> bool:
    namespace = policy.placement.namespace
    for name in sets:  # noqa: SIM110  # a generator costs as much as the rest, and this runs for every placement
        if policy.wants_set(name) and scene.fleet.is_bound(name, namespace):
            return True
    return False


class Shift(NamedTuple):
    """What to do, and a cluster's footing before and after a change."""

    impact: Impact
    before: Footing = _OUT
    after: Footing = _OUT


def assess(scene: Scene, policy: Policy, result: PlacementResult, change: MemberChange) -> Shift:
    """What a change of one cluster means for a placement with this result."""
    if result.held is not None:
        return Shift(Impact.NOTHING)
    before = find_footing(scene, policy, change.old, change.old_sets)
    after = find_footing(scene, policy, change.new, change.new_sets)
    return Shift(_weigh(scene, policy, result, change, (before, after)), before, after)


def _weigh(
    scene: Scene, policy: Policy, result: PlacementResult, change: MemberChange, footings: tuple[Footing, Footing]
) -> Impact:
    before, after = footings
    if after.feasible and before.feasible and _changes_others(policy, change):
        return Impact.DECIDE
    if before == after:
        return Impact.NOTHING
    if policy.problems or not result.decisions:
        return Impact.DECIDE
    if policy.needs_scores:
        return _weigh_ranked(scene, policy, result, change.name, footings)
    return _weigh_all_taken(policy, result, change.name in scene.decided, after)


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


def _weigh_ranked(
    scene: Scene, policy: Policy, result: PlacementResult, name: str, footings: tuple[Footing, Footing]
) -> Impact:
    """The best clusters are wanted: only a change among them, or one that gets among them, matters."""
    before, after = footings
    if name in scene.decided:
        stays = after.feasible and not (policy.relative and not before.feasible)
        return Impact.WAKE_TIME if stays else Impact.DECIDE
    if policy.count is None or len(result.decisions) < policy.count:
        return Impact.DECIDE
    if not before.feasible and not after.feasible:
        return Impact.NOTHING
    if policy.relative:
        return Impact.DECIDE
    if not after.feasible or name in find_worst(scene, policy, name, after):
        return Impact.WAKE_TIME
    return Impact.DECIDE if policy.by_score else Impact.SWAP


def find_worst(scene: Scene, policy: Policy, name: str, footing: Footing) -> list[str]:
    """The clusters that are one too many if an undecided cluster competes with those that are decided."""
    totals = score(scene, policy, scene.decided | {name}).totals
    shunned = footing.standing is not None and footing.standing.shunned_for is not None
    return rank(totals, {name} if shunned else ())[policy.count :]
