"""Predicates: labels and claims, alternatives, and what is wrong with them."""

from __future__ import annotations

from typing import Any

import pytest

from placement_fleet import decide, decisions, managed, placement, reasons

EU = {"labelSelector": {"matchLabels": {"region": "eu"}}}
AWS = {"claimSelector": {"matchExpressions": [{"key": "platform", "operator": "In", "values": ["AWS"]}]}}

CLUSTERS = (
    managed("cluster1", labels={"region": "us"}, clusterClaims=[{"name": "platform", "value": "AWS"}]),
    managed("cluster2", labels={"region": "ap", "gpu": "true"}),
    managed("cluster3", labels={"region": "eu"}, clusterClaims=[{"name": "platform", "value": "AWS"}]),
    managed("cluster4", labels={"region": "eu"}, clusterClaims=[{"name": "platform", "value": "GCP"}]),
)


def label(operator: str, *values: str, key: str = "region") -> dict[str, Any]:
    return {"labelSelector": {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}}


@pytest.mark.req("OCM-07")
@pytest.mark.parametrize(
    ("selectors", "chosen"),
    [
        ([], "1234"),
        ([{}], "1234"),
        ([EU], "34"),
        ([AWS], "13"),
        ([EU | AWS], "3"),
        ([EU, AWS], "134"),
        ([label("In", "us", "ap")], "12"),
        ([label("NotIn", "us", "ap")], "34"),
        ([label("NotIn", "true", key="gpu")], "134"),
        ([label("Exists", key="gpu")], "2"),
        ([label("DoesNotExist", key="gpu")], "134"),
        ([label("In", "moon")], ""),
        ([label("In", "moon"), EU], "34"),
    ],
)
def test_a_cluster_must_match_one_predicate(selectors: list[dict[str, Any]], chosen: str) -> None:
    wanted = placement(predicates=[{"requiredClusterSelector": selector} for selector in selectors])
    result = decide(wanted, *CLUSTERS)
    assert result.decisions == tuple(f"cluster{number}" for number in chosen)
    assert reasons(result)["PlacementSatisfied"] == ("AllDecisionsScheduled" if chosen else "NoManagedClusterMatched")


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        (label("Exists", "a"), "spec.predicates[0].requiredClusterSelector.labelSelector: operator Exists"),
        (label("In"), "needs at least one value"),
        (label("Near", "a"), "unknown operator 'Near'"),
        (label("In", "a", key="-"), "label key '-'"),
        (label("In", "a b"), "value 'a b'"),
        ({"claimSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}, "claimSelector: operator In"),
        ({"celSelector": {"celExpressions": ["true"]}}, "CEL expressions over clusters are not supported"),
    ],
)
def test_a_faulty_selector_empties_the_decisions_and_says_so(selector: dict[str, Any], message: str) -> None:
    wanted = placement(predicates=[{"requiredClusterSelector": selector}])
    result = decide(wanted, *CLUSTERS, decisions("cluster1"))
    assert result.decisions == ()
    assert reasons(result) == {
        "PlacementMisconfigured": "Misconfigured",
        "PlacementSatisfied": "NoManagedClusterMatched",
    }
    assert message in result.conditions["PlacementMisconfigured"].message


def test_a_faulty_selector_does_not_show_while_there_is_nothing_to_select() -> None:
    wanted = placement(predicates=[{"requiredClusterSelector": label("In")}])
    assert reasons(decide(wanted))["PlacementMisconfigured"] == "Succeedconfigured"
