"""A cluster of a hub as a row of a table: its state, its sets, its free devices, its taints, who selected it."""

from __future__ import annotations

from typing import Final

from dray.api.cluster import ManagedCluster
from dray.api.cluster.cluster_set import CLUSTER_SET_LABEL
from dray.api.cluster.managed_cluster import AUTOMATIC_TAINTS, claimed_counts
from dray.api.taints import taint_text
from dray.api.well_known import FREE_DEVICES, TOTAL_DEVICES
from dray.prose.wording import names
from dray.views.hub import cluster_state

HEADER: Final = ("CLUSTER", "STATE", "SET", "FREE DEVICES", "TAINTS", "PLACEMENTS")
NOTHING: Final = "–"
CLASSES_NAMED: Final = 3


def row(cluster: ManagedCluster, placements: int) -> tuple[str, ...]:
    """The cells. The hub's own taints show as the state."""
    taints = [taint_text(one) for one in cluster.spec.taints if one.key not in AUTOMATIC_TAINTS]
    return (
        cluster.metadata.name,
        cluster_state(cluster),
        cluster.metadata.labels.get(CLUSTER_SET_LABEL, NOTHING),
        _free(cluster),
        ", ".join(taints) or NOTHING,
        str(placements),
    )


def _free(cluster: ManagedCluster) -> str:
    """`gpu.example.com 12/16` for every class, but for many."""
    total = claimed_counts(cluster, TOTAL_DEVICES)
    shown = [f"{name} {free}/{total.get(name, '?')}" for name, free in claimed_counts(cluster, FREE_DEVICES).items()]
    return names(shown, CLASSES_NAMED) or NOTHING
