"""Fleets for tests of placement: short ways to make clusters, sets, placements and decisions."""

from __future__ import annotations

import datetime as dt
from typing import Any

from dray.api import cluster, codec
from dray.api.cluster import (
    AddOnPlacementScore,
    AddOnPlacementScoreItem,
    AddOnPlacementScoreStatus,
    ClusterDecision,
    ManagedCluster,
    ManagedClusterSet,
    ManagedClusterSetBinding,
    ManagedClusterSetBindingSpec,
    Placement,
    PlacementDecision,
    PlacementDecisionStatus,
    Taint,
)
from dray.api.cluster.cluster_set import CLUSTER_SET_LABEL
from dray.api.cluster.placement_decision import (
    DECISION_GROUP_INDEX_LABEL,
    DECISION_GROUP_NAME_LABEL,
    PLACEMENT_LABEL,
)
from dray.api.meta import ObjectMeta
from dray.api.references import ObjectName
from dray.api.times import Time
from dray.placement import Fleet, FleetObject, PlacementResult, place

NOW = dt.datetime(2026, 6, 1, 12, 0, tzinfo=dt.UTC)
KEY = ObjectName("ns1", "placement1")
KINDS: tuple[type[FleetObject], ...] = (
    cluster.ManagedCluster,
    cluster.ManagedClusterSet,
    cluster.ManagedClusterSetBinding,
    cluster.Placement,
    cluster.PlacementDecision,
    cluster.AddOnPlacementScore,
)


def at(seconds: float) -> dt.datetime:
    """So many seconds after NOW."""
    return NOW + dt.timedelta(seconds=seconds)


def read(document: dict[str, Any]) -> Any:
    """An object from its manifest, which must have no faults."""
    kind = {kind.__name__: kind for kind in KINDS}[document["kind"]]
    reading = codec.read(document, kind)
    assert reading.obj is not None, reading.errors
    assert not reading.unknown
    return reading.obj


def taint(text: str, age: float | None = 0) -> Taint:
    """A taint from `key[=value]:effect`, added `age` seconds before NOW; None: it does not say when."""
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    return Taint(key=key, value=value, effect=effect, time_added=None if age is None else Time.of(at(-age)))


def managed(
    name: str, *taints: Taint, labels: dict[str, str] | None = None, in_set: str | None = "set1", **status: Any
) -> ManagedCluster:
    """A cluster of a set; `status` has `allocatable`, `capacity` and `clusterClaims` as in a manifest."""
    all_labels = ({CLUSTER_SET_LABEL: in_set} if in_set else {}) | (labels or {})
    made: ManagedCluster = read(
        {
            "kind": "ManagedCluster",
            "metadata": {"name": name, "labels": all_labels},
            "spec": {"hubAcceptsClient": True, "taints": codec.to_builtins(taints)},
            "status": status,
        }
    )
    return made


def cluster_set(name: str = "set1", **selector: Any) -> ManagedClusterSet:
    """A set; `selector` is its `clusterSelector` as in a manifest."""
    made: ManagedClusterSet = read(
        {"kind": "ManagedClusterSet", "metadata": {"name": name}, "spec": {"clusterSelector": selector}}
    )
    return made


def binding(name: str = "set1", namespace: str = "ns1") -> ManagedClusterSetBinding:
    """A set bound to a namespace."""
    return ManagedClusterSetBinding(
        metadata=ObjectMeta(name=name, namespace=namespace), spec=ManagedClusterSetBindingSpec(cluster_set=name)
    )


def placement(name: str = "placement1", namespace: str = "ns1", **spec: Any) -> Placement:
    """A placement; `spec` as in a manifest."""
    made: Placement = read({"kind": "Placement", "metadata": {"name": name, "namespace": namespace}, "spec": spec})
    return made


def decisions(*clusters: str, of: str = "placement1", namespace: str = "ns1", number: int = 1) -> PlacementDecision:
    """What has been decided for a placement."""
    labels = {PLACEMENT_LABEL: of, DECISION_GROUP_INDEX_LABEL: "0", DECISION_GROUP_NAME_LABEL: ""}
    return PlacementDecision(
        metadata=ObjectMeta(name=f"{of}-decision-{number}", namespace=namespace, labels=labels),
        status=PlacementDecisionStatus(decisions=tuple(ClusterDecision(cluster_name=name) for name in clusters)),
    )


def scores(
    cluster_name: str, name: str = "demo", valid_until: dt.datetime | None = None, **values: int
) -> AddOnPlacementScore:
    """Scores of an add-on for one cluster."""
    return AddOnPlacementScore(
        metadata=ObjectMeta(name=name, namespace=cluster_name),
        status=AddOnPlacementScoreStatus(
            scores=tuple(AddOnPlacementScoreItem(name=key, value=value) for key, value in values.items()),
            valid_until=Time.of(valid_until) if valid_until is not None else None,
        ),
    )


def fleet(*objects: FleetObject) -> Fleet:
    """A fleet with one set, bound to namespace ns1, and these objects."""
    return Fleet([cluster_set(), binding(), *objects])


def decide(wanted: Placement, *objects: FleetObject, now: dt.datetime = NOW) -> PlacementResult:
    """Place in a fleet made of these objects."""
    return place(fleet(*objects), wanted, now)


def reasons(result: PlacementResult) -> dict[str, str]:
    """Condition → reason."""
    return {kind: condition.reason for kind, condition in result.conditions.items()}
