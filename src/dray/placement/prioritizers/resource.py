"""ResourceAllocatableCPU and ResourceAllocatableMemory: the more room, the better."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from dray.placement.case import PlacementCase
from dray.placement.prioritizers import HIGHEST, Scores


class ResourceAllocatable:
    """From 100 for the cluster with the most of a resource down to -100 for the one with the least."""

    relative = True

    def __init__(self, name: str, resource: str) -> None:
        self.name = name
        self.resource = resource

    def score(self, case: PlacementCase, clusters: AbstractSet[str]) -> Scores:
        """Linear between the extremes; all equal: 100 for all. Clusters that do not report get none."""
        members = case.fleet.members
        amounts = {
            name: amount for name in clusters if (amount := members[name].allocatable.get(self.resource)) is not None
        }
        if not amounts:
            return Scores({})
        least, most = (case.extremes or {}).get(self.resource) or (min(amounts.values()), max(amounts.values()))
        span = most - least
        if span == 0:
            return Scores(dict.fromkeys(amounts, HIGHEST))
        return Scores({name: int(((amount - least) / span - 0.5) * 200.0) for name, amount in amounts.items()})


CPU = ResourceAllocatable("ResourceAllocatableCPU", "cpu")
MEMORY = ResourceAllocatable("ResourceAllocatableMemory", "memory")
