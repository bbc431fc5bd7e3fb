"""Columns for cluster.open-cluster-management.io."""

from __future__ import annotations

from typing import Any

from dray.server.answers.tables.columns import AGE, NAME, Column, text


def _condition(kind: str, attribute: str) -> Any:
    def read(obj: Any) -> str:
        return next((getattr(c, attribute) for c in obj.status.conditions if c.type == kind), "")

    return read


def _urls(cluster: Any) -> str:
    return ",".join(config.url for config in cluster.spec.managed_cluster_client_configs if config.url)


def _taints(cluster: Any) -> int:
    return len(cluster.spec.taints)


COLUMNS: dict[str, tuple[Column, ...]] = {
    "ManagedCluster": (
        NAME,
        text("Hub Accepted", lambda c: str(c.spec.hub_accepts_client).lower(), description="Whether it may register."),
        text("Managed Cluster URLs", _urls, description="Where the cluster is."),
        text("Joined", _condition("ManagedClusterJoined", "status"), description="Whether it has registered."),
        text("Available", _condition("ManagedClusterConditionAvailable", "status"), description="Whether it is there."),
        AGE,
        text("Taints", _taints, wide=True, description="How many taints keep placements away."),
    ),
    "ManagedClusterSet": (NAME, text("Empty", _condition("ClusterSetEmpty", "status")), AGE),
    "Placement": (
        NAME,
        text(
            "Succeeded", _condition("PlacementSatisfied", "status"), description="Whether enough clusters were found."
        ),
        text("Reason", _condition("PlacementSatisfied", "reason"), description="Why."),
        text("SelectedClusters", lambda p: p.status.number_of_selected_clusters, description="Clusters decided on."),
        AGE,
    ),
    "PlacementDecision": (
        NAME,
        text("Clusters", lambda d: len(d.status.decisions), description="Clusters in it."),
        AGE,
    ),
}
