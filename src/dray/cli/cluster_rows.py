"""A cluster of a hub as a row of a table: its state, its sets, its free devices, its taints, who selected it."""

from __future__ import annotations

from typing import Final

from dray.api.cluster import ManagedCluster
from dray.api.cluster.cluster_set import CLUSTER_SET_LABEL
from dray.api.cluster.managed_cluster import CONDITION_AVAILABLE
from dray.placement.availability import AUTOMATIC_TAINTS

HEADER: Final = ("CLUSTER", "STATE", "SET", "FREE DEVICES", "TAINTS", "PLACEMENTS")
NOTHING: Final = "–"
CLASSES_NAMED: Final = 3

_FREE: Final = "free.devices.dray.dev/"
_TOTAL: Final = "total.devices.dray.dev/"


def row(cluster: ManagedCluster, placements: int) -> tuple[str, ...]:
    """The cells. The hub's own taints show as the state."""
    taints = [
        f"{one.key}{f'={one.value}' if one.value else ''}:{one.effect}"
        for one in cluster.spec.taints
        if one.key not in AUTOMATIC_TAINTS
    ]
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
    available = next((one.status for one in cluster.status.conditions if one.type == CONDITION_AVAILABLE), None)
    return {"True": "available", "False": "unavailable", None: "not joined"}.get(available, "unreachable")


def _free(cluster: ManagedCluster) -> str:
    """`gpu.example.com 12/16` for every class, but for many."""
    claims = {claim.name: claim.value for claim in cluster.status.cluster_claims}
    classes = [name.removeprefix(_FREE) for name in claims if name.startswith(_FREE)]
    shown = [f"{name} {claims[_FREE + name]}/{claims.get(_TOTAL + name, '?')}" for name in classes[:CLASSES_NAMED]]
    return ", ".join(shown) + (" …" if len(classes) > CLASSES_NAMED else "") or NOTHING
