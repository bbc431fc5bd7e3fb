"""What placing a placement yields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from dray.api.references import ObjectName
from dray.placement.explain import Explanation
from dray.placement.groups import Group
from dray.placement.moments import Moment, seconds_between


class ConditionResult(NamedTuple):
    """A condition of the placement's status, without the times."""

    status: str
    reason: str
    message: str

    def to_dict(self) -> dict[str, str]:
        """For programs."""
        return {"status": self.status, "reason": self.reason, "message": self.message}


class PlacementResult(msgspec.Struct, frozen=True):
    """The decisions of one placement at one moment."""

    placement: ObjectName
    decisions: tuple[str, ...]
    """Cluster names, group by group."""
    groups: tuple[Group, ...]
    conditions: Mapping[str, ConditionResult]
    """By type. Empty if the placement was left as it is."""
    now: Moment
    requeue_at: Moment | None = None
    """When time alone may change the result."""
    scores: Mapping[str, int] = msgspec.field(default_factory=dict)
    """Total scores of the clusters that passed the filters, or only of those selected; empty if they played no part."""
    warnings: tuple[str, ...] = ()
    held: str | None = None
    """Why the placement was left as it is, if it was: nothing is to be written then."""
    explanation: Explanation | None = None
    """Only `place` explains; the engine explains on demand."""

    @property
    def requeue_after(self) -> float | None:
        """Seconds from `now` until time alone may change the result."""
        return None if self.requeue_at is None else seconds_between(self.now, self.requeue_at)

    def same_outcome(self, other: PlacementResult) -> bool:
        """Whether there is nothing to write and no other time to wake at."""
        return (
            self.decisions == other.decisions
            and self.groups == other.groups
            and self.conditions == other.conditions
            and self.requeue_at == other.requeue_at
            and self.warnings == other.warnings
            and self.held == other.held
        )

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        return {
            "placement": str(self.placement),
            "decisions": list(self.decisions),
            "groups": [
                {"index": group.index, "name": group.name, "clusters": list(group.clusters)} for group in self.groups
            ],
            "conditions": {kind: condition.to_dict() for kind, condition in self.conditions.items()},
            "requeueAfterSeconds": self.requeue_after,
            "scores": dict(self.scores),
            "warnings": list(self.warnings),
        }
