"""Predicates: a cluster must match one of them, by its labels and its claims."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from dray.placement.case import PlacementCase
from dray.placement.filters import Filtered
from dray.placement.policy import Policy


class Predicates:
    """Without predicates every cluster passes."""

    name = "Predicate"

    def filter(self, case: PlacementCase, policy: Policy, clusters: AbstractSet[str]) -> Filtered:
        """Those that match any predicate."""
        if policy.predicate_problem is not None:
            return Filtered(frozenset(), policy.predicate_problem)
        if not policy.predicates:
            return Filtered(clusters)
        matched = [predicate.select(case.fleet, clusters) for predicate in policy.predicates]
        return Filtered(matched[0] if len(matched) == 1 else frozenset().union(*matched))
