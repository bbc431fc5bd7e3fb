"""What filters and prioritizers are told: for whom, among which clusters, and when."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from dray.api.references import ObjectName
from dray.placement.amounts import Extremes
from dray.placement.fleet import Fleet
from dray.placement.moments import Moment


class PlacementCase(NamedTuple):
    """One placement, about to be decided."""

    fleet: Fleet
    placement: ObjectName
    decided: AbstractSet[str]
    """The clusters that are in its decisions already."""
    now: Moment
    extremes: Mapping[str, Extremes | None] | None = None
    """What all clusters that are compared have least and most of; None: to be found among those that are scored."""

    @staticmethod
    def of(fleet: Fleet, placement: ObjectName, now: Moment) -> PlacementCase:
        """The case of a placement as the fleet stands."""
        return PlacementCase(fleet, placement, fleet.ledger.decided(placement), now)
