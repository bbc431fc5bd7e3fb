"""Steady: what has been decided should stay so."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from dray.placement.prioritizers import HIGHEST, Scores
from dray.placement.scene import Scene


class Steady:
    """The highest score for clusters in the decisions, 0 for the others."""

    name = "Steady"
    relative = False

    def score(self, scene: Scene, clusters: AbstractSet[str]) -> Scores:
        """100 or 0."""
        return Scores({name: HIGHEST for name in scene.decided if name in clusters})
