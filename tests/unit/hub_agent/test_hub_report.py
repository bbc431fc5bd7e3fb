"""What a cluster tells its hub: sums over nodes, devices by class, conditions; and nothing when there is no news."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

import builders
from dray.api.cluster import ManagedCluster, ManagedClusterClaim, ManagedClusterStatus
from dray.api.generated.core import Node
from dray.api.labels import LabelSelector
from dray.api.meta import Condition, LabelSelectorRequirement, ObjectMeta
from dray.api.meta import LabelSelector as Selector
from dray.api.quantity import Quantity
from dray.api.times import Time
from dray.hub_agent.device_counts import Count
from dray.hub_agent.report import ClusterReport, describe_devices, describe_nodes, status_of

NOON, LATER = Time("2026-06-01T12:00:00Z"), Time("2026-06-01T12:00:30Z")


def node(name: str, cpu: str, **spec: Any) -> Node:
    return builders.typed(builders.node(name, resources={"cpu": cpu, "memory": "1Gi"}, **spec), Node)


def test_capacity_is_the_sum_over_nodes_and_cordoned_nodes_have_nothing_to_allocate() -> None:
    capacity, allocatable = describe_nodes([node("a", "4"), node("b", "500m"), node("c", "8", unschedulable=True)])
    assert {name: str(amount) for name, amount in capacity.items()} == {"cpu": "12500m", "memory": "3Gi"}
    assert {name: str(amount) for name, amount in allocatable.items()} == {"cpu": "4500m", "memory": "2Gi"}


def test_claims_can_be_selected_by() -> None:
    claims = {
        claim.name: claim.value for claim in describe_devices({"gpu.example.com": Count(8, 0, 3), "n" * 200: Count()})
    }
    assert claims["total.devices.dray.dev/gpu.example.com"] == "8"
    assert claims["free.devices.dray.dev/gpu.example.com"] == "0"
    assert claims["tainted.devices.dray.dev/gpu.example.com"] == "3"
    for name, value in claims.items():
        requirement = LabelSelectorRequirement(key=name, operator="In", values=(value,))
        assert LabelSelector.of(Selector(match_expressions=(requirement,))).matches(claims)


def test_there_are_no_more_claims_than_can_be_read() -> None:
    claims = describe_devices({f"class-{number:03}": Count(1, 1, 0) for number in range(250)})
    assert len(claims) == 401
    assert claims[-1] == ManagedClusterClaim(name="more.devices.dray.dev/classes", value="150")


def cluster(*claims: ManagedClusterClaim, **conditions: str) -> ManagedCluster:
    said = tuple(
        Condition(type=kind, status=status, reason="R", message="", last_transition_time=NOON)
        for kind, status in conditions.items()
    )
    status = ManagedClusterStatus(conditions=said, cluster_claims=claims)
    return ManagedCluster(metadata=ObjectMeta(name="c1", generation=3), status=status)


REPORT = ClusterReport(
    {"cpu": Quantity.parse("4")}, {"cpu": Quantity.parse("3")}, "v1.2", describe_devices({"gpu": Count(2, 1, 0)})
)


def test_no_news_is_the_same_status() -> None:
    first = cluster()
    told = replace(first, status=status_of(first, REPORT, NOON))
    assert told.status != first.status
    assert status_of(told, REPORT, LATER) == told.status


def test_what_others_say_stays() -> None:
    foreign = ManagedClusterClaim(name="id.k8s.io", value="x")
    gone = ManagedClusterClaim(name="free.devices.dray.dev/removed-class", value="7")
    status = status_of(cluster(foreign, gone, HubAcceptedManagedCluster="True"), REPORT, NOON)
    names = [claim.name for claim in status.cluster_claims]
    assert names[0] == "id.k8s.io"
    assert "free.devices.dray.dev/removed-class" not in names
    assert [one.type for one in status.conditions] == [
        "HubAcceptedManagedCluster",
        "ManagedClusterJoined",
        "ManagedClusterConditionAvailable",
    ]


@pytest.mark.parametrize(("problem", "status"), [("", "True"), ("it burns", "False")])
def test_a_cluster_called_unknown_says_how_it_really_is(problem: str, status: str) -> None:
    told = status_of(cluster(ManagedClusterConditionAvailable="Unknown"), replace(REPORT, problem=problem), LATER)
    available = next(one for one in told.conditions if one.type == "ManagedClusterConditionAvailable")
    assert (available.status, available.last_transition_time) == (status, LATER)
    assert available.message == (problem or "Managed cluster is available")
