"""Steady: what has been decided should stay so."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from dray.placement.case import PlacementCase
from dray.placement.prioritizers import HIGHEST, Scores


class Steady:
    """The highest score for clusters in the decisions, 0 for the others."""

    name = "Steady"
    relative = False

    def score(self, case: PlacementCase, clusters: AbstractSet[str]) -> Scores:
        """100 or 0."""
        return Scores({name: HIGHEST for name in case.decided if name in clusters})
