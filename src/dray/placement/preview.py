"""What a change of one cluster would do to the placements that have it or could get it, before anybody makes it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any, NamedTuple

from dray.api.cluster import ManagedCluster
from dray.api.references import ObjectName
from dray.placement.engine import Engine
from dray.placement.fleet import Event, FleetObject
from dray.placement.moments import moment_of, seconds_between
from dray.placement.result import PlacementResult


class PlacementChange(NamedTuple):
    """One placement before and after. Lists of clusters are by name."""

    placement: ObjectName
    had: bool
    """Whether the changed cluster was selected."""
    has: bool
    """Whether it is selected after the change."""
    leaves_after: float | None
    """Seconds until it has to leave because a toleration runs out; None if it stays."""
    gained: tuple[str, ...]
    lost: tuple[str, ...]
    selected: int
    wanted: int | None

    @property
    def loses(self) -> bool:
        """Whether the cluster is taken from the placement, now or in some time."""
        return self.had and (not self.has or self.leaves_after is not None)

    @property
    def is_short(self) -> bool:
        """Whether fewer clusters are left than are wanted, or none."""
        return self.selected < self.wanted if self.wanted is not None else not self.selected

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        return {
            "placement": str(self.placement),
            "had": self.had,
            "has": self.has,
            "leavesAfterSeconds": self.leaves_after,
            "gained": list(self.gained),
            "lost": list(self.lost),
            "selected": self.selected,
            "wanted": self.wanted,
        }


def preview_change(objects: Iterable[FleetObject], changed: ManagedCluster, now: dt.datetime) -> list[PlacementChange]:
    """The placements that have the cluster, or that the change gives another decision, by name.

    `objects` are the fleet, its placements and their decisions as they are.
    """
    engine = Engine()
    engine.load(objects, now)
    keys = sorted(engine.placements())
    before = {key: engine.result(key) for key in keys}
    engine.apply(Event(changed), now)
    after = {key: engine.result(key) for key in keys}
    found: list[PlacementChange] = []
    for key in keys:
        old, new = before[key], after[key]
        if old is not None and new is not None:
            change = _compare(engine, (old, new), changed.metadata.name, now)
            if change.had or change.gained or change.lost:
                found.append(change)
    return found


def _compare(
    engine: Engine, results: tuple[PlacementResult, PlacementResult], cluster: str, now: dt.datetime
) -> PlacementChange:
    old, new = (frozenset(result.decisions) for result in results)
    key = results[0].placement
    leaves = engine.tolerated_until(key, cluster, now) if cluster in new else None
    return PlacementChange(
        placement=key,
        had=cluster in old,
        has=cluster in new,
        leaves_after=None if leaves is None else seconds_between(moment_of(now), leaves),
        gained=tuple(sorted(new - old)),
        lost=tuple(sorted(old - new)),
        selected=len(new),
        wanted=engine.wanted(key),
    )
