"""Balance: the less a cluster carries, the better."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from dray.placement.case import PlacementCase
from dray.placement.prioritizers import HIGHEST, Scores


class Balance:
    """From 100 for a cluster that no other placement selected down to -100 for the most popular one."""

    name = "Balance"
    relative = False

    def score(self, case: PlacementCase, clusters: AbstractSet[str]) -> Scores:
        """By the number of other placements; the scored placement's own decisions do not count."""
        ledger = case.fleet.ledger
        highest = ledger.highest_load_without(case.placement)
        if not highest:
            return Scores(dict.fromkeys(clusters, HIGHEST))
        load_of, score_of = ledger.loads.get, ScoreOfLoad(highest)
        values = {name: score_of[load_of(name, 0)] for name in clusters}
        for name in case.decided:
            if name in values:
                values[name] = score_of[load_of(name, 0) - 1]
        return Scores(values)


class ScoreOfLoad(dict[int, int]):
    """Scores by number of placements, each worked out when first asked for: most numbers do not occur.

    `highest` is the most that any cluster carries; if that is nothing, every score is the highest.
    """

    def __init__(self, highest: int) -> None:
        self.highest = highest

    def __missing__(self, load: int) -> int:
        # Halved and truncated before doubling, as upstream: scores are even.
        score = self[load] = 2 * int(HIGHEST * (0.5 - load / self.highest)) if self.highest else HIGHEST
        return score
