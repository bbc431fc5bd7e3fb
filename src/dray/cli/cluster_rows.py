"""A cluster of a hub as a row of a table: its state, its sets, its free devices, its taints, who selected it."""

from __future__ import annotations

from typing import Final

from dray.api.cluster import ManagedCluster
from dray.api.cluster.cluster_set import CLUSTER_SET_LABEL
from dray.api.cluster.managed_cluster import CONDITION_AVAILABLE
from dray.api.conditions import find_condition
from dray.api.taints import taint_text
from dray.placement.availability import AUTOMATIC_TAINTS

HEADER: Final = ("CLUSTER", "STATE", "SET", "FREE DEVICES", "TAINTS", "PLACEMENTS")
NOTHING: Final = "–"
CLASSES_NAMED: Final = 3

FREE: Final = "free.devices.dray.dev/"
TOTAL: Final = "total.devices.dray.dev/"


def row(cluster: ManagedCluster, placements: int) -> tuple[str, ...]:
    """The cells. The hub's own taints show as the state."""
    taints = [taint_text(one) for one in cluster.spec.taints if one.key not in AUTOMATIC_TAINTS]
    return (
        cluster.metadata.name,
        state(cluster),
        cluster.metadata.labels.get(CLUSTER_SET_LABEL, NOTHING),
        _free(cluster),
        ", ".join(taints) or NOTHING,
        str(placements),
    )


def state(cluster: ManagedCluster) -> str:
    """In one word, what the hub knows about a cluster."""
    if cluster.metadata.deletion_timestamp is not None:
        return "deleting"
    if not cluster.spec.hub_accepts_client:
        return "not accepted"
    available = find_condition(cluster.status.conditions, CONDITION_AVAILABLE)
    if available is None:
        return "not joined"
    return {"True": "available", "False": "unavailable"}.get(available.status, "unreachable")


def _free(cluster: ManagedCluster) -> str:
    """`gpu.example.com 12/16` for every class, but for many."""
    claims = {claim.name: claim.value for claim in cluster.status.cluster_claims}
    classes = [name.removeprefix(FREE) for name in claims if name.startswith(FREE)]
    shown = [f"{name} {claims[FREE + name]}/{claims.get(TOTAL + name, '?')}" for name in classes[:CLASSES_NAMED]]
    return ", ".join(shown) + (" …" if len(classes) > CLASSES_NAMED else "") or NOTHING
