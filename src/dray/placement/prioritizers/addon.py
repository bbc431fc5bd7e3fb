"""AddOn: a score that someone else keeps in AddOnPlacementScore objects."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from dray.placement.case import PlacementCase
from dray.placement.prioritizers import Scores

_NAMED = 3


class AddOn:
    """The score `score_name` of each cluster's AddOnPlacementScore `resource_name`; 0 if there is none."""

    relative = False

    def __init__(self, resource_name: str, score_name: str) -> None:
        self.resource_name = resource_name
        self.score_name = score_name
        self.name = f"AddOn/{resource_name}/{score_name}"

    def score(self, case: PlacementCase, clusters: AbstractSet[str]) -> Scores:
        """As the add-on last said. Scores past their `validUntil` count as 0 and are warned of."""
        values: dict[str, int] = {}
        expired: list[str] = []
        for name in clusters:
            scores = case.fleet.scores(name, self.resource_name)
            if scores is None:
                continue
            if scores.expired(case.now):
                expired.append(name)
            else:
                values[name] = scores.values.get(self.score_name, 0)
        return Scores(values, self._warn(expired))

    def _warn(self, expired: list[str]) -> tuple[str, ...]:
        if not expired:
            return ()
        shown = ", ".join(sorted(expired)[:_NAMED]) + (" …" if len(expired) > _NAMED else "")
        return (f"AddOnPlacementScore {self.resource_name} of {len(expired)} clusters has expired: {shown}",)
