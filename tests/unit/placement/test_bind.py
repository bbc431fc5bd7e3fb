"""What is written: PlacementDecisions of at most 100 clusters, and the placement's status."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from dray.api.cluster import Placement, PlacementStatus
from dray.api.meta import Condition, ObjectMeta
from dray.api.times import Time
from dray.placement import decision_objects, placement_status
from placement_fleet import decide, managed, placement, scores

NOON = Time("2026-06-01T12:00:00Z")
LATER = Time("2026-06-01T13:00:00Z")


def stored(wanted: Placement) -> Placement:
    return replace(wanted, metadata=ObjectMeta(name="placement1", namespace="ns1", uid="u1", generation=4))


@pytest.mark.req("SVS-80")
def test_decisions_are_cut_into_objects_of_a_hundred() -> None:
    clusters = [managed(f"cluster{number:03}") for number in range(250)]
    wanted = stored(placement(decisionStrategy={"groupStrategy": {"clustersPerDecisionGroup": 150}}))
    result = decide(wanted, *clusters)
    objects = decision_objects(wanted, result)
    assert [(obj.metadata.name, len(obj.status.decisions)) for obj in objects] == [
        ("placement1-decision-1", 100),
        ("placement1-decision-2", 50),
        ("placement1-decision-3", 100),
    ]
    assert [obj.metadata.labels for obj in objects] == [
        {
            "cluster.open-cluster-management.io/placement": "placement1",
            "cluster.open-cluster-management.io/decision-group-index": index,
            "cluster.open-cluster-management.io/decision-group-name": "",
        }
        for index in ("0", "0", "1")
    ]
    status = placement_status(wanted, result, NOON)
    assert status.number_of_selected_clusters == 250
    assert [(group.decisions, group.clusters_count) for group in status.decision_groups] == [
        (("placement1-decision-1", "placement1-decision-2"), 150),
        (("placement1-decision-3",), 100),
    ]


def test_decisions_belong_to_their_placement() -> None:
    wanted = stored(placement())
    (obj,) = decision_objects(wanted, decide(wanted, managed("a")))
    (owner,) = obj.metadata.owner_references
    assert (owner.kind, owner.name, owner.uid, owner.controller) == ("Placement", "placement1", "u1", True)
    assert obj.metadata.namespace == "ns1"


def test_without_clusters_there_is_one_empty_object() -> None:
    wanted = stored(placement())
    (obj,) = decision_objects(wanted, decide(wanted))
    assert obj.metadata.name == "placement1-decision-1"
    assert obj.status.decisions == ()


@pytest.mark.parametrize(("sort_by", "score"), [("Score", 105), ("", 0)])
def test_scores_are_written_where_they_order_the_decisions(sort_by: str, score: int) -> None:
    add_on = {"type": "AddOn", "addOn": {"resourceName": "demo", "scoreName": "a"}}
    wanted = stored(placement(sortBy=sort_by, prioritizerPolicy={"configurations": [{"scoreCoordinate": add_on}]}))
    (obj,) = decision_objects(wanted, decide(wanted, managed("a"), scores("a", a=5)))
    assert [entry.score for entry in obj.status.decisions] == [score]


def test_a_condition_keeps_its_time_while_its_status_stays() -> None:
    wanted = stored(placement())
    first = placement_status(wanted, decide(wanted, managed("a")), NOON)
    again = placement_status(replace(wanted, status=first), decide(wanted, managed("a")), LATER)
    assert again == first
    lost = placement_status(replace(wanted, status=first), decide(wanted), LATER)
    times = {condition.type: condition.last_transition_time for condition in lost.conditions}
    assert times == {"PlacementMisconfigured": NOON, "PlacementSatisfied": LATER}
    assert {condition.observed_generation for condition in lost.conditions} == {4}


def test_conditions_of_others_stay() -> None:
    other = Condition(type="Other", status="True", reason="Because")
    wanted = replace(stored(placement()), status=PlacementStatus(conditions=(other,)))
    assert placement_status(wanted, decide(wanted), NOON).conditions[0] == other
