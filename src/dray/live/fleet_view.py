"""A hub as people look at it, live: its clusters, and the placements that selected them."""

from __future__ import annotations

from collections import Counter

from dray.api.cluster import ManagedCluster, PlacementDecision
from dray.api.cluster.placement_decision import PLACEMENT_LABEL
from dray.api.kinds import CLUSTERS, DECISIONS
from dray.live.following import Following


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
        decisions: list[PlacementDecision] = self.in_order(DECISIONS)
        selected = {
            (_placement(one), entry.cluster_name)  # which is in two parts while it moves from one to the other
            for one in decisions
            for entry in one.status.decisions
        }
        return Counter(cluster for _, cluster in selected)


def _placement(decision: PlacementDecision) -> tuple[str, str]:
    meta = decision.metadata
    return meta.namespace, meta.labels.get(PLACEMENT_LABEL, meta.name)
