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
    """This, what is lost and how many are selected are told as of when the cluster has left, if it stays for a time."""
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
    name = changed.metadata.name
    leaves = {key: engine.tolerated_until(key, name, now) for key in keys if _has(after[key], name)}
    seconds = {key: seconds_between(moment_of(now), at) for key, at in leaves.items() if at is not None}
    found: dict[ObjectName, PlacementChange] = {}
    for key in sorted(keys, key=lambda one: (seconds.get(one, 0.0), one)):
        if key in seconds:
            engine.due(now + dt.timedelta(seconds=seconds[key]))
        old, new, then = before[key], after[key], engine.result(key) if key in seconds else after[key]
        if old is not None and new is not None and then is not None:
            change = PlacementChange(
                placement=key,
                had=_has(old, name),
                has=_has(new, name),
                leaves_after=seconds.get(key),
                gained=_beside(then, old),
                lost=_beside(old, then),
                selected=len(set(then.decisions)),
                wanted=engine.wanted(key),
            )
            if change.had or change.gained or change.lost:
                found[key] = change
    return [found[key] for key in keys if key in found]


def _has(result: PlacementResult | None, cluster: str) -> bool:
    return result is not None and cluster in result.decisions


def _beside(some: PlacementResult, others: PlacementResult) -> tuple[str, ...]:
    return tuple(sorted(set(some.decisions).difference(others.decisions)))
