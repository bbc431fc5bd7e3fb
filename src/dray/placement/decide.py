"""Deciding a placement: filter → score → select → divide (OCM-19). Pure; binding is someone else's business.

cluster sets ─→ predicates ─→ taints ─→ scores ─→ the best N ─→ groups
  available       matched      feasible   ranking    selected
"""

from __future__ import annotations

import datetime as dt

from msgspec.structs import replace

from dray.api.cluster import Placement
from dray.placement.case import PlacementCase
from dray.placement.conditions import derive_conditions
from dray.placement.explain import explain
from dray.placement.filters import Filter
from dray.placement.filters.predicates import Predicates
from dray.placement.filters.taints import Taints
from dray.placement.fleet import Fleet
from dray.placement.groups import Group, divide, flatten
from dray.placement.lightest import select_lightest
from dray.placement.moments import Moment, earliest, moment_of
from dray.placement.policy import Policy, Weights, read_policy
from dray.placement.result import PlacementResult
from dray.placement.select import rank, score
from dray.placement.summary import summarize
from dray.placement.trace import Trace

FILTERS: tuple[Filter, ...] = (Predicates(), Taints())


def place(fleet: Fleet, placement: Placement, now: dt.datetime) -> PlacementResult:
    """Decide a placement and explain the decision. The fleet is not changed."""
    policy = read_policy(placement)
    trace, result = decide(fleet, policy, moment_of(now), score_all=True)
    return with_explanation(trace, result)


def decide(fleet: Fleet, policy: Policy, now: Moment, *, score_all: bool = False) -> tuple[Trace, PlacementResult]:
    """Decide a placement. Scores are worked out if the selection needs them, or if `score_all` asks for them."""
    trace = Trace(PlacementCase.of(fleet, policy.placement, now), policy)
    _find_sets(trace)
    if trace.held is not None:
        return trace, _hold(trace)
    requeue_at = _filter(trace)
    warnings: tuple[str, ...] = policy.warnings
    trace.problem = trace.problem or policy.prioritizer_problem
    if trace.problem is None:
        weights = None if score_all else policy.weights
        if weights is not None and _is_plenty(trace):
            trace.chosen = _choose_lightest(trace, weights)
        else:
            if score_all or policy.needs_scores:
                scored = score(trace.case, policy, trace.feasible)
                trace.totals, trace.parts = scored.totals, scored.parts
                warnings += scored.warnings
                requeue_at = earliest(requeue_at, scored.requeue_at)
            trace.chosen = _choose(trace)
        trace.problem = policy.group_problem
    groups = _divide(trace)
    trace.selected = flatten(groups)
    return trace, PlacementResult(
        placement=policy.placement,
        decisions=trace.selected,
        groups=groups,
        conditions=derive_conditions(trace),
        now=now,
        requeue_at=requeue_at if trace.selected else None,
        scores=trace.totals,
        warnings=warnings,
    )


def find_requeue(fleet: Fleet, policy: Policy, now: Moment) -> Moment | None:
    """When time alone may change what the filters or the prioritizers say."""
    trace = Trace(PlacementCase.of(fleet, policy.placement, now), policy)
    _find_sets(trace)
    requeue_at = _filter(trace)
    if policy.needs_scores and policy.add_ons:  # the other prioritizers do not change with time
        requeue_at = earliest(requeue_at, score(trace.case, policy, trace.feasible).requeue_at)
    return requeue_at


def with_explanation(trace: Trace, result: PlacementResult) -> PlacementResult:
    """The result with its explanation, made while the fleet still is as it was decided."""
    return replace(result, explanation=explain(trace, summarize(trace)))


def _find_sets(trace: Trace) -> None:
    """The bound sets, those that the spec asks for, and their clusters. A set with a fault holds the placement."""
    fleet, policy = trace.case.fleet, trace.policy
    trace.held = policy.idle
    trace.bound = fleet.bound_sets(policy.placement.namespace)
    trace.eligible = tuple(name for name in trace.bound if policy.wants_set(name))
    for name in trace.eligible:
        fault = fleet.set_named(name).fault
        if fault is not None:
            trace.held = trace.held or f"ManagedClusterSet {name}: {fault}"
    trace.available = fleet.in_sets(trace.eligible)


def _filter(trace: Trace) -> Moment | None:
    """Run the filters. They do not run without clusters, nor does a fault in them show then, as upstream."""
    requeue_at: Moment | None = None
    clusters = trace.available
    stages = []
    for stage in FILTERS:
        if clusters and trace.problem is None:
            filtered = stage.filter(trace.case, trace.policy, clusters)
            clusters, trace.problem = filtered.kept, filtered.problem
            trace.shunned = filtered.shunned
            requeue_at = earliest(requeue_at, filtered.requeue_at)
        stages.append(clusters)
    trace.matched, trace.feasible = stages
    return requeue_at


def _choose(trace: Trace) -> tuple[str, ...]:
    """The best of the feasible clusters, as many as are wanted."""
    if trace.totals:
        trace.ranking = tuple(rank(trace.totals, trace.shunned))
        return trace.ranking[: trace.policy.count]
    return tuple(trace.feasible)


def _is_plenty(trace: Trace) -> bool:
    """Whether there are enough clusters that no taint asks to avoid."""
    return trace.policy.count is not None and len(trace.feasible) - len(trace.shunned) >= trace.policy.count


def _choose_lightest(trace: Trace, weights: Weights) -> tuple[str, ...]:
    """The same as `_choose`, where Balance and Steady alone decide; only the chosen clusters have scores then."""
    clusters = trace.feasible - trace.shunned.keys() if trace.shunned else trace.feasible
    trace.totals = select_lightest(trace.case, weights, clusters, trace.policy.count or 0)
    trace.ranking = tuple(trace.totals)
    return trace.ranking


def _divide(trace: Trace) -> tuple[Group, ...]:
    chosen = trace.chosen if trace.problem is None else ()
    place_of = {name: place for place, name in enumerate(chosen)} if trace.policy.by_score else {}
    return divide(trace.policy.groups, chosen, trace.case.fleet, place_of.__getitem__ if place_of else None)


def _hold(trace: Trace) -> PlacementResult:
    """Leave the decisions as the API shows them."""
    observed = trace.case.fleet.ledger.observed_objects(trace.policy.placement)
    groups = tuple(Group(index, entry.group_name, entry.clusters) for index, (_, entry) in enumerate(observed))
    trace.selected = flatten(groups)
    return PlacementResult(
        placement=trace.policy.placement,
        decisions=trace.selected,
        groups=groups,
        conditions={},
        now=trace.case.now,
        held=trace.held,
    )
