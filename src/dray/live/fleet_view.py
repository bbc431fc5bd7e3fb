"""A hub as people look at it, live: its clusters, and the placements that selected them."""

from __future__ import annotations

from collections import Counter

from dray.api.cluster import ManagedCluster
from dray.api.kinds import CLUSTERS, DECISIONS
from dray.live.following import Following
from dray.views.hub import count_selections


class FleetView(Following):
    """Fed by informers."""

    async def start(self) -> None:
        """Everything has been read once, and is kept current. Raises ApiError or OSError if it cannot be read."""
        for kind in (CLUSTERS, DECISIONS):
            self.follow(kind)
        await self.run_all()

    def clusters(self) -> list[ManagedCluster]:
        """All clusters by name."""
        return self.in_order(CLUSTERS)

    def selections(self) -> Counter[str]:
        """By cluster, how many placements selected it."""
        return count_selections(self.in_order(DECISIONS))
