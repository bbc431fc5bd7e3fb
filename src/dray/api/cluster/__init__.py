"""cluster.open-cluster-management.io: managed clusters, sets of them, and placements that select among them.

One struct per kind serves every version: Placement v1alpha1 (the seed's) and v1beta1, ManagedClusterSet and
its binding v1beta1 and v1beta2 have equal shapes. The fields are the seed's plus every field that Open
Cluster Management 1.3 ships. Constants stay in the modules of their kinds.
"""

from dray.api.cluster.addon_placement_score import (
    AddOnPlacementScore,
    AddOnPlacementScoreItem,
    AddOnPlacementScoreStatus,
)
from dray.api.cluster.cluster_set import (
    ManagedClusterSelector,
    ManagedClusterSet,
    ManagedClusterSetBinding,
    ManagedClusterSetBindingSpec,
    ManagedClusterSetBindingStatus,
    ManagedClusterSetSpec,
    ManagedClusterSetStatus,
)
from dray.api.cluster.managed_cluster import (
    ClientConfig,
    ClusterSetManagedNamespaceConfig,
    ManagedCluster,
    ManagedClusterClaim,
    ManagedClusterSpec,
    ManagedClusterStatus,
    ManagedClusterVersion,
    ManagedNamespaceConfig,
    Taint,
)
from dray.api.cluster.placement import (
    AddOnScore,
    ClusterCelSelector,
    ClusterClaimSelector,
    ClusterPredicate,
    ClusterSelector,
    DecisionGroup,
    DecisionGroupStatus,
    DecisionStrategy,
    GroupClusterSelector,
    GroupStrategy,
    Placement,
    PlacementSpec,
    PlacementStatus,
    PrioritizerConfig,
    PrioritizerPolicy,
    ScoreCoordinate,
    SpreadConstraintsTerm,
    SpreadPolicy,
    Toleration,
)
from dray.api.cluster.placement_decision import (
    ClusterDecision,
    PlacementDecision,
    PlacementDecisionStatus,
)

__all__ = [
    "AddOnPlacementScore",
    "AddOnPlacementScoreItem",
    "AddOnPlacementScoreStatus",
    "AddOnScore",
    "ClientConfig",
    "ClusterCelSelector",
    "ClusterClaimSelector",
    "ClusterDecision",
    "ClusterPredicate",
    "ClusterSelector",
    "ClusterSetManagedNamespaceConfig",
    "DecisionGroup",
    "DecisionGroupStatus",
    "DecisionStrategy",
    "GroupClusterSelector",
    "GroupStrategy",
    "ManagedCluster",
    "ManagedClusterClaim",
    "ManagedClusterSelector",
    "ManagedClusterSet",
    "ManagedClusterSetBinding",
    "ManagedClusterSetBindingSpec",
    "ManagedClusterSetBindingStatus",
    "ManagedClusterSetSpec",
    "ManagedClusterSetStatus",
    "ManagedClusterSpec",
    "ManagedClusterStatus",
    "ManagedClusterVersion",
    "ManagedNamespaceConfig",
    "Placement",
    "PlacementDecision",
    "PlacementDecisionStatus",
    "PlacementSpec",
    "PlacementStatus",
    "PrioritizerConfig",
    "PrioritizerPolicy",
    "ScoreCoordinate",
    "SpreadConstraintsTerm",
    "SpreadPolicy",
    "Taint",
    "Toleration",
]
