"""Score and select: sum the weighted scores, rank, and take as many as are wanted."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from dray.placement.case import PlacementCase
from dray.placement.moments import Moment, earliest
from dray.placement.policy import Policy


class Scored(NamedTuple):
    """The clusters' total scores, and what the prioritizers had to say."""

    totals: dict[str, int]
    parts: dict[str, Mapping[str, int]]
    """Prioritizer → its unweighted scores."""
    warnings: tuple[str, ...]
    requeue_at: Moment | None


def score(case: PlacementCase, policy: Policy, clusters: AbstractSet[str]) -> Scored:
    """Each cluster's sum of weight · score."""
    totals = dict.fromkeys(clusters, 0)
    parts: dict[str, Mapping[str, int]] = {}
    warnings: list[str] = []
    requeue_at: Moment | None = None
    for prioritizer, weight in policy.prioritizers:
        scores = prioritizer.score(case, clusters)
        for name, value in scores.values.items():
            totals[name] += weight * value
        parts[prioritizer.name] = scores.values
        warnings += scores.warnings
        requeue_at = earliest(requeue_at, scores.requeue_at)
    return Scored(totals, parts, tuple(warnings), requeue_at)


def rank(totals: Mapping[str, int], shunned: Collection[str]) -> list[str]:
    """The best first: clusters that no taint asks to avoid, then by score, then by name."""
    in_order = sorted(totals)
    in_order.sort(key=totals.__getitem__, reverse=True)
    if not shunned:
        return in_order
    return [name for name in in_order if name not in shunned] + [name for name in in_order if name in shunned]
