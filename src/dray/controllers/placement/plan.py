"""What has to be written so that the API shows what was decided."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec.structs import replace

from dray.api.cluster import Placement, PlacementDecision, PlacementStatus
from dray.api.times import Time
from dray.placement import PlacementResult, decision_objects, placement_status

NAMED = 10
"""How many clusters an event names."""
SCORES = 30
"""How many scores an event tells."""


class ChangedDecision(NamedTuple):
    """A PlacementDecision as it is, and as it should be."""

    old: PlacementDecision
    new: PlacementDecision

    @property
    def of_labels(self) -> bool:
        """Whether the object itself changes, not only its status."""
        return self.old.metadata != self.new.metadata

    @property
    def of_status(self) -> bool:
        """Whether the decisions in it change."""
        return self.old.status != self.new.status


class PlacementWrites(NamedTuple):
    """Writes, in this order: decisions come and change before others go, and the status tells of what is there."""

    create: tuple[PlacementDecision, ...]
    change: tuple[ChangedDecision, ...]
    delete: tuple[PlacementDecision, ...]
    status: PlacementStatus | None
    """The placement's new status; None: as it is."""


def plan_writes(
    placement: Placement,
    result: PlacementResult,
    existing: Mapping[str, PlacementDecision],
    note: str | None,
    now: Time,
) -> PlacementWrites:
    """`existing` holds the placement's PlacementDecisions, and others that have a name it needs, by name."""
    wanted = {obj.metadata.name: obj for obj in decision_objects(placement, result)}
    changes = [_change(existing[name], obj) for name, obj in wanted.items() if name in existing]
    status = placement_status(placement, result, now, note)
    return PlacementWrites(
        create=tuple(obj for name, obj in wanted.items() if name not in existing),
        change=tuple(change for change in changes if change.of_labels or change.of_status),
        delete=tuple(obj for name, obj in existing.items() if name not in wanted),
        status=None if status == placement.status else status,
    )


def _change(old: PlacementDecision, wanted: PlacementDecision) -> ChangedDecision:
    """What others wrote into the metadata stays."""
    labels = old.metadata.labels | wanted.metadata.labels
    owners = old.metadata.owner_references or wanted.metadata.owner_references
    metadata = replace(old.metadata, labels=labels, owner_references=owners)
    return ChangedDecision(old, replace(old, metadata=metadata, status=wanted.status))


def describe_change(old: PlacementDecision, new: PlacementDecision) -> str:
    """Which clusters came and which went, for an event."""
    before, after = _names(old), _names(new)
    parts = [_list(sign, names) for sign, names in (("+", after - before), ("-", before - after)) if names]
    return " ".join(parts) or "other scores or another order"


def describe_scores(decision: PlacementDecision, result: PlacementResult) -> str:
    """The scores of the clusters in a PlacementDecision, for an event; empty if scores played no part."""
    names = [entry.cluster_name for entry in decision.status.decisions if entry.cluster_name in result.scores]
    shown = " ".join(f"{name}:{result.scores[name]}" for name in names[:SCORES])
    return shown + (" …" if len(names) > SCORES else "")


def _names(decision: PlacementDecision) -> frozenset[str]:
    return frozenset(entry.cluster_name for entry in decision.status.decisions)


def _list(sign: str, names: frozenset[str]) -> str:
    shown = " ".join(f"{sign}{name}" for name in sorted(names)[:NAMED])
    return shown + (f" {sign}{len(names) - NAMED} more" if len(names) > NAMED else "")
