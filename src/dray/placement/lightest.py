"""The usual selection, without scoring everybody: by Balance and Steady alone, the least loaded clusters are the best.

    decided clusters, each scored ────────────────────────────┐
    others, from the lowest load on, until enough are found ──┴─▶ the best N

A cluster's Balance score never rises with its load, so clusters with a higher load need not be looked at once as many
as are wanted have been found. The result is exactly that of scoring and ranking them all.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from itertools import groupby, islice

from dray.placement.case import PlacementCase
from dray.placement.policy import Weights
from dray.placement.prioritizers import HIGHEST
from dray.placement.prioritizers.balance import ScoreOfLoad


def select_lightest(case: PlacementCase, weights: Weights, clusters: AbstractSet[str], count: int) -> dict[str, int]:
    """The best `count` of `clusters`, the best first, with their scores."""
    ledger = case.fleet.ledger
    score_of = ScoreOfLoad(ledger.highest_load_without(case.placement))
    own = case.decided & clusters
    steady = weights.steady * HIGHEST
    ranked = [(-(weights.balance * score_of[ledger.loads[name] - 1] + steady), name) for name in own]
    wanted = count
    for score, names in _levels(case, score_of):
        best = list(islice((name for name in names if name in clusters and name not in own), wanted))
        ranked += [(-weights.balance * score, name) for name in best]
        wanted -= len(best)
        if wanted <= 0:
            break
    return {name: -score for score, name in heapq.nsmallest(count, ranked)}


def find_heavier(case: PlacementCase, weights: Weights, name: str) -> str | None:
    """The worst of the decided clusters, if an undecided one is better."""
    ledger = case.fleet.ledger
    score_of = ScoreOfLoad(ledger.highest_load_without(case.placement))
    steady = weights.steady * HIGHEST
    own = weights.balance * score_of[ledger.loads.get(name, 0)]
    if own < steady - weights.balance * HIGHEST:
        return None  # no decided cluster can have so little
    place, worst = max(
        (-(weights.balance * score_of[ledger.loads[other] - 1] + steady), other) for other in case.decided
    )
    return worst if (-own, name) < (place, worst) else None


def _levels(case: PlacementCase, score_of: ScoreOfLoad) -> Iterator[tuple[int, Iterator[str]]]:
    """Clusters that have the same Balance score if they are not decided, by name; the best score first."""
    ledger = case.fleet.ledger
    for score, loads in groupby(sorted(ledger.by_load), key=score_of.__getitem__):
        yield score, heapq.merge(*(ledger.in_order(load) for load in loads))
