"""PlacementDecision: the clusters that a placement selected, at most 100 to an object (v1beta1)."""

from __future__ import annotations

from msgspec import field

from dray.api.meta import Object
from dray.api.struct import Struct

PLACEMENT_LABEL = "cluster.open-cluster-management.io/placement"
DECISION_GROUP_INDEX_LABEL = "cluster.open-cluster-management.io/decision-group-index"
DECISION_GROUP_NAME_LABEL = "cluster.open-cluster-management.io/decision-group-name"

DECISIONS = 100


class ClusterDecision(Struct):
    """One selected cluster, why, and its score."""

    cluster_name: str = field(default_factory=str)
    reason: str = field(default_factory=str)
    score: int = 0


class PlacementDecisionStatus(Struct):
    """Up to DECISIONS clusters."""

    decisions: tuple[ClusterDecision, ...] = ()


class PlacementDecision(Object):
    """A part of a placement's decisions; PLACEMENT_LABEL names the placement. Namespaced."""

    status: PlacementDecisionStatus = field(default_factory=PlacementDecisionStatus)
