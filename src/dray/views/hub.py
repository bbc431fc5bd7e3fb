"""A hub: its clusters with what they have, and its placements with why each cluster was chosen or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from dray.api.cluster import ManagedCluster, Placement, PlacementDecision
from dray.api.cluster.cluster_set import CLUSTER_SET_LABEL
from dray.api.cluster.managed_cluster import CONDITION_AVAILABLE, claimed_counts
from dray.api.cluster.placement_decision import PLACEMENT_LABEL
from dray.api.conditions import find_condition
from dray.api.references import full_name
from dray.api.taints import taint_text
from dray.api.well_known import FREE_DEVICES, TOTAL_DEVICES
from dray.placement import Fleet, FleetObject, place
from dray.views.device import Document
from dray.views.shares import share_out

MOST_REASONS: Final = 200
MOST_TAINTS: Final = 100
MOST_PLACEMENTS: Final = 200
MOST_JUDGED: Final = 40_000
"""Clusters that are judged, for all placements together: each time a few microseconds, and a line."""


class ClusterRow(Document, frozen=True, kw_only=True):
    """A cluster."""

    name: str
    state: str
    cluster_set: str
    devices: dict[str, tuple[int, int]]
    """By class, how many are free, and how many there are."""
    taints: tuple[str, ...]
    placements: int


class ClusterReason(Document, frozen=True, kw_only=True):
    """Why a placement has a cluster, or not."""

    cluster: str
    selected: bool
    score: int | None
    why: str


class PlacementRow(Document, frozen=True, kw_only=True):
    """A placement."""

    name: str
    summary: str
    problem: str | None
    clusters: tuple[ClusterReason, ...]
    changes_in: float | None
    """Seconds until time alone may change it."""


class Hub(Document, frozen=True, kw_only=True):
    """Everything."""

    clusters: tuple[ClusterRow, ...] = ()
    placements: tuple[PlacementRow, ...] = ()
    more_placements: int = 0


def hub(objects: Iterable[FleetObject], now: datetime) -> Hub:
    """The hub that these objects make."""
    them = list(objects)
    selected = count_selections(one for one in them if isinstance(one, PlacementDecision))
    clusters = sorted((one for one in them if isinstance(one, ManagedCluster)), key=lambda one: one.metadata.name)
    fleet = Fleet(them)
    placements = sorted((one for one in them if isinstance(one, Placement)), key=full_name)
    most = min(MOST_PLACEMENTS, max(1, MOST_JUDGED // max(1, len(clusters))))
    shown = share_out(placements, most, lambda one: one.metadata.namespace)
    return Hub(
        clusters=tuple(_cluster(one, selected[one.metadata.name]) for one in clusters),
        placements=tuple(_placement(fleet, one, now) for one in shown),
        more_placements=len(placements) - len(shown),
    )


def count_selections(decisions: Iterable[PlacementDecision]) -> Counter[str]:
    """By cluster, how many placements selected it."""
    selected = {
        (_placement_of(one), entry.cluster_name)  # which is in two parts while it moves from one to the other
        for one in decisions
        for entry in one.status.decisions
    }
    return Counter(cluster for _, cluster in selected)


def _placement_of(decision: PlacementDecision) -> tuple[str, str]:
    meta = decision.metadata
    return meta.namespace, meta.labels.get(PLACEMENT_LABEL, meta.name)


def _placement(fleet: Fleet, placement: Placement, now: datetime) -> PlacementRow:
    result = place(fleet, placement, now)
    told = result.explanation
    assert told is not None  # `place` always explains
    return PlacementRow(
        name=full_name(placement),
        summary=told.summary,
        problem=told.problem,
        changes_in=result.requeue_after,
        clusters=tuple(
            ClusterReason(cluster=one.cluster, selected=one.stage == "selected", score=one.score, why=one.text)
            for one in told.clusters[:MOST_REASONS]
        ),
    )


def _cluster(cluster: ManagedCluster, placements: int) -> ClusterRow:
    free, total = (claimed_counts(cluster, prefix) for prefix in (FREE_DEVICES, TOTAL_DEVICES))
    return ClusterRow(
        name=cluster.metadata.name,
        state=cluster_state(cluster),
        cluster_set=cluster.metadata.labels.get(CLUSTER_SET_LABEL, ""),
        devices={name: (count, total[name]) for name, count in free.items() if name in total},
        taints=tuple(taint_text(one) for one in cluster.spec.taints[:MOST_TAINTS]),
        placements=placements,
    )


def cluster_state(cluster: ManagedCluster) -> str:
    """In one word, what the hub knows about a cluster."""
    if cluster.metadata.deletion_timestamp is not None:
        return "deleting"
    if not cluster.spec.hub_accepts_client:
        return "not accepted"
    available = find_condition(cluster.status.conditions, CONDITION_AVAILABLE)
    if available is None:
        return "not joined"
    return {"True": "available", "False": "unavailable"}.get(available.status, "unreachable")
