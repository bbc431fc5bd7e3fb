"""What filters and prioritizers are told: for whom, among which clusters, and when."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import NamedTuple

from dray.placement.fleet import Fleet
from dray.placement.ledger import PlacementKey
from dray.placement.moments import Moment


class Scene(NamedTuple):
    """One placement, about to be decided."""

    fleet: Fleet
    placement: PlacementKey
    decided: AbstractSet[str]
    """The clusters that are in its decisions already."""
    now: Moment

    @staticmethod
    def of(fleet: Fleet, placement: PlacementKey, now: Moment) -> Scene:
        """The scene as the fleet stands."""
        return Scene(fleet, placement, fleet.ledger.decided(placement), now)
