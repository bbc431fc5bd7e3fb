"""Why each cluster was chosen or not."""

from __future__ import annotations

from typing import Any

import pytest

from dray.placement import Explanation, Fleet, FleetObject, PlacementResult, Stage, place
from dray.placement.decide import FILTERS
from placement_fleet import NOW, binding, cluster_set, decide, decisions, managed, placement, read, taint


def explanation(result: PlacementResult) -> Explanation:
    assert result.explanation is not None
    return result.explanation


EU = [{"requiredClusterSelector": {"labelSelector": {"matchLabels": {"region": "eu"}}}}]
AWS = {"claimSelector": {"matchExpressions": [{"key": "platform", "operator": "In", "values": ["AWS"]}]}}


@pytest.mark.parametrize(
    ("spec", "cluster", "stage", "text"),
    [
        ({}, managed("a", in_set=None), Stage.CLUSTER_SET, "belongs to no ManagedClusterSet"),
        ({}, managed("a", in_set="set2"), Stage.CLUSTER_SET, "belongs to set2, not bound to namespace ns1"),
        (
            {"clusterSets": ["set3"]},
            managed("a", in_set="set1"),
            Stage.CLUSTER_SET,
            "belongs to set1, which spec.clusterSets does not ask for",
        ),
        (
            {"predicates": EU},
            managed("a", labels={"region": "us"}),
            Stage.PREDICATE,
            "label region is 'us', needs region=eu",
        ),
        ({"predicates": EU}, managed("a"), Stage.PREDICATE, "label region is not set, needs region=eu"),
        (
            {"predicates": [{"requiredClusterSelector": AWS}]},
            managed("a", clusterClaims=[{"name": "platform", "value": "GCP"}]),
            Stage.PREDICATE,
            "claim platform is 'GCP', needs platform=AWS",
        ),
        ({}, managed("a", taint("gpu=true:NoSelect")), Stage.TAINT, "taint gpu=true:NoSelect is not tolerated"),
        (
            {"tolerations": [{"key": "gpu", "operator": "Exists", "tolerationSeconds": 30}]},
            managed("a", taint("gpu:NoSelect", 90)),
            Stage.TAINT,
            "the toleration of taint gpu:NoSelect ran out 60 s ago",
        ),
        (
            {"tolerations": [{"key": "gpu", "operator": "Exists", "tolerationSeconds": 90}]},
            managed("a", taint("gpu:NoSelect", 30)),
            Stage.SELECTED,
            "taint gpu:NoSelect is tolerated for another 60 s",
        ),
        (
            {"tolerations": [{"key": "gpu", "operator": "Exists"}]},
            managed("a", taint("gpu:NoSelect")),
            Stage.SELECTED,
            "tolerated: taint gpu:NoSelect",
        ),
        ({"numberOfClusters": 1}, managed("z"), Stage.SCORE, "ranks 2 of 2, 1 wanted"),
        (
            {"numberOfClusters": 1},
            managed("a", taint("x:PreferNoSelect")),
            Stage.SCORE,
            "ranks 2 of 2, 1 wanted; taint x:PreferNoSelect asks to avoid it",
        ),
        (
            {"numberOfClusters": 2},
            managed("a", taint("x:PreferNoSelect")),
            Stage.SELECTED,
            "taint x:PreferNoSelect asks to avoid it, but no other cluster is left",
        ),
        ({}, managed("a"), Stage.SELECTED, "newly selected"),
        ({"tolerations": [{}]}, managed("a"), Stage.MISCONFIGURED, "not looked at: the placement is misconfigured"),
    ],
)
def test_each_stage_says_why(spec: dict[str, Any], cluster: FleetObject, stage: Stage, text: str) -> None:
    middle = managed("m", labels={"region": "eu"}, clusterClaims=[{"name": "platform", "value": "AWS"}])
    others: list[FleetObject] = [cluster_set("set2"), cluster_set("set3"), binding("set3"), middle]
    reason = explanation(decide(placement(**spec), cluster, *others)).of(cluster.metadata.name)
    assert reason is not None
    assert (reason.stage, reason.text) == (stage, text)


@pytest.mark.req("OCM-19", "OCM-45")
def test_taints_are_looked_at_last() -> None:
    assert [stage.name for stage in FILTERS] == ["Predicate", "TaintToleration"]
    both = managed("a", taint("gpu:NoSelect"), labels={"region": "us"})
    reason = explanation(decide(placement(predicates=EU), both)).of("a")
    assert reason is not None
    assert reason.stage is Stage.PREDICATE


def test_times_are_there_for_programs() -> None:
    limited = placement(tolerations=[{"operator": "Exists", "tolerationSeconds": 60}])
    result = decide(limited, managed("kept", taint("a:NoSelect", 20)), managed("gone", taint("a:NoSelect", 90)))
    document = explanation(result).to_dict()
    assert document["clusters"] == [
        {
            "cluster": "kept",
            "stage": "selected",
            "reason": "taint a:NoSelect is tolerated for another 40 s",
            "score": 100,
            "taint": "a:NoSelect",
            "toleratedSeconds": 40.0,
        },
        {
            "cluster": "gone",
            "stage": "taint",
            "reason": "the toleration of taint a:NoSelect ran out 30 s ago",
            "taint": "a:NoSelect",
            "toleratedSeconds": -30.0,
        },
    ]
    assert result.to_dict()["requeueAfterSeconds"] == 40.0


def test_people_get_a_table() -> None:
    result = decide(placement(numberOfClusters=2), managed("a"), managed("b", taint("x:NoSelect")))
    assert str(explanation(result)).splitlines() == [
        "ns1/placement1: selected 1 of 2 wanted clusters; 2 available; 1 kept out by taints (b: x:NoSelect)",
        "",
        "  cluster  selected  score  why",
        "  a        yes       100    newly selected",
        "  b        no        –      taint x:NoSelect is not tolerated",
    ]


def test_the_table_and_the_condition_stay_short_in_a_large_fleet() -> None:
    clusters = [managed(f"cluster{number:04}", taint(f"key{number}:NoSelect")) for number in range(500)]
    result = decide(placement(), *clusters)
    assert str(explanation(result)).splitlines()[-1] == "  … and 400 more"
    assert result.conditions["PlacementSatisfied"].message == (
        "Selected 0 clusters; 500 available; 500 kept out by taints (cluster0000: key0:NoSelect, "
        "cluster0001: key1:NoSelect, cluster0002: key2:NoSelect, …)"
    )


def test_a_problem_is_said_first() -> None:
    text = str(explanation(decide(placement(tolerations=[{}]), managed("a"))))
    assert "Misconfigured: TaintToleration: spec.tolerations[0]: an empty key" in text


def test_a_held_placement_says_what_holds_it() -> None:
    fleet = Fleet([cluster_set("set1", selectorType="Magic"), binding(), managed("a"), managed("b"), decisions("a")])
    found = explanation(place(fleet, placement(), NOW))
    assert found.summary.startswith("left as it is: ManagedClusterSet set1: ")
    assert [(reason.cluster, reason.stage) for reason in found.clusters] == [("a", Stage.SELECTED), ("b", Stage.HELD)]


def test_a_cluster_on_its_way_out_is_explained() -> None:
    going = read({"kind": "ManagedCluster", "metadata": {"name": "a", "deletionTimestamp": "2026-06-01T11:00:00Z"}})
    reason = explanation(decide(placement(), going)).of("a")
    assert reason is not None
    assert reason.stage is Stage.DELETING
