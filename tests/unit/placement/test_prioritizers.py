"""Scores: each prioritizer, weights and modes, and what is wrong with them."""

from __future__ import annotations

from typing import Any

import pytest

from placement_fleet import at, decide, decisions, managed, placement, reasons, scores

STEADY = {"builtIn": "Steady"}
CPU = {"type": "BuiltIn", "builtIn": "ResourceAllocatableCPU"}
MEMORY = {"type": "BuiltIn", "builtIn": "ResourceAllocatableMemory"}
ADD_ON = {"type": "AddOn", "addOn": {"resourceName": "demo", "scoreName": "a"}}


def policy(*configurations: tuple[dict[str, Any], int | None], mode: str = "Exact") -> dict[str, Any]:
    """A prioritizer policy of score coordinates and weights; None: no weight given."""
    return {
        "mode": mode,
        "configurations": [
            {"scoreCoordinate": coordinate} | ({} if weight is None else {"weight": weight})
            for coordinate, weight in configurations
        ],
    }


def clusters(count: int) -> list[Any]:
    return [managed(f"cluster{number}") for number in range(1, count + 1)]


def test_by_default_steady_and_balance_count_one_each() -> None:
    result = decide(placement(), *clusters(2), decisions("cluster2"))
    assert result.scores == {"cluster1": 100, "cluster2": 200}


def test_balance_counts_other_placements_and_not_its_own() -> None:
    others = [decisions("cluster1", "cluster2", of=f"other{number}") for number in range(2)]
    result = decide(placement(numberOfClusters=1), *clusters(3), *others, decisions("cluster1", of="third"))
    assert result.scores == {"cluster1": -100, "cluster2": 2 * int(100 * (0.5 - 2 / 3)), "cluster3": 100}
    own = decide(placement(), *clusters(2), decisions("cluster1"), decisions("cluster1", namespace="elsewhere"))
    assert own.scores == {"cluster1": -100 + 100, "cluster2": 100}


def test_ties_go_by_name_and_the_best_are_listed_by_name() -> None:
    chosen = decide(placement(numberOfClusters=2), *clusters(4), decisions("cluster4"))
    assert chosen.decisions == ("cluster1", "cluster4")


@pytest.mark.req("OCM-27")
def test_what_has_been_decided_stays() -> None:
    chosen = decide(placement(numberOfClusters=2), *clusters(5), decisions("cluster3", "cluster5"))
    assert chosen.decisions == ("cluster3", "cluster5")


@pytest.mark.parametrize(
    ("amounts", "expected"),
    [
        ([2, 4, 10], [-100, -50, 100]),
        ([5, 5], [100, 100]),
        ([7], [100]),
        ([1, None, 4], [-100, 0, 100]),
        ([None, None], [0, 0]),
        ([1, 2, 4], [-100, -33, 100]),
    ],
)
@pytest.mark.parametrize(("resource", "coordinate"), [("cpu", CPU), ("memory", MEMORY)])
def test_resources_are_scored_between_the_least_and_the_most(
    resource: str, coordinate: dict[str, Any], amounts: list[int | None], expected: list[int]
) -> None:
    made = [
        managed(f"cluster{number}", allocatable={resource: str(amount)}, capacity={resource: "100"})
        if amount is not None
        else managed(f"cluster{number}", allocatable={resource: "50"})
        for number, amount in enumerate(amounts)
    ]
    result = decide(placement(prioritizerPolicy=policy((coordinate, None))), *made)
    assert [result.scores[f"cluster{number}"] for number in range(len(amounts))] == expected


def test_an_add_on_scores_clusters_until_its_scores_expire() -> None:
    wanted = placement(numberOfClusters=1, prioritizerPolicy=policy((ADD_ON, None)))
    objects = [
        *clusters(3),
        scores("cluster1", a=10),
        scores("cluster2", a=90, valid_until=at(0)),
        scores("cluster3", b=100),
    ]
    valid = decide(wanted, *objects)
    assert (valid.decisions, valid.scores) == (("cluster2",), {"cluster1": 10, "cluster2": 90, "cluster3": 0})
    assert valid.warnings == ()
    expired = decide(wanted, *objects, now=at(0.001))
    assert (expired.decisions, expired.scores["cluster2"]) == (("cluster1",), 0)
    assert expired.warnings == ("AddOnPlacementScore demo of 1 clusters has expired: cluster2",)


@pytest.mark.parametrize(
    ("policies", "score"),
    [
        (policy(mode="Exact"), 0),
        (policy(mode="Additive"), 100 + 100),
        (policy(mode=""), 100 + 100),
        (policy((STEADY, 3)), 300),
        (policy((STEADY, 3), mode="Additive"), 300 + 100),
        (policy((STEADY, 0), mode="Additive"), 100),
        (policy((STEADY, -2)), -200),
        (policy((STEADY, None)), 100),
        (policy((STEADY, 5), (STEADY, 2)), 200),
        (policy((ADD_ON, 2), (ADD_ON, 3)), 5 * 7),
        (policy(({"builtIn": "Spread"}, 0), (STEADY, 1)), 100),
    ],
)
def test_modes_and_weights(policies: dict[str, Any], score: int) -> None:
    result = decide(placement(prioritizerPolicy=policies), *clusters(1), decisions("cluster1"), scores("cluster1", a=7))
    assert result.scores == {"cluster1": score}


@pytest.mark.parametrize(
    ("policies", "message"),
    [
        (policy(mode="Subtractive"), "mode: 'Subtractive' is unknown"),
        (policy(({"builtIn": "Spread"}, 1)), "'Spread' is not a built-in prioritizer"),
        (policy(({"type": "AddOn"}, 1)), "configurations[0].scoreCoordinate.addOn: must be given"),
        (policy(({"type": "Magic"}, 1)), "type: 'Magic' is unknown"),
        ({"configurations": [{"weight": 1}]}, "configurations[0].scoreCoordinate: must be given"),
    ],
)
def test_a_faulty_policy_empties_the_decisions_and_says_so(policies: dict[str, Any], message: str) -> None:
    result = decide(placement(prioritizerPolicy=policies), *clusters(2), decisions("cluster1"))
    assert result.decisions == ()
    assert reasons(result) == {
        "PlacementMisconfigured": "Misconfigured",
        "PlacementSatisfied": "NoManagedClusterMatched",
    }
    assert message in result.conditions["PlacementMisconfigured"].message


def test_a_faulty_policy_shows_even_without_clusters() -> None:
    assert reasons(decide(placement(prioritizerPolicy=policy(mode="x")))) == {
        "PlacementMisconfigured": "Misconfigured",
        "PlacementSatisfied": "AllManagedClusterSetsEmpty",
    }


def test_decisions_can_be_listed_by_score() -> None:
    wanted = placement(sortBy="Score", prioritizerPolicy=policy((ADD_ON, 1)))
    result = decide(wanted, *clusters(3), scores("cluster2", a=5), scores("cluster3", a=5))
    assert result.decisions == ("cluster2", "cluster3", "cluster1")


def test_spreading_is_said_not_to_work() -> None:
    spread = {"spreadConstraints": [{"topologyKey": "region", "topologyKeyType": "Label"}]}
    assert "spreadPolicy" in decide(placement(spreadPolicy=spread), *clusters(1)).warnings[0]


@pytest.mark.parametrize(("wanted", "status"), [(0, "NoManagedClusterMatched"), (3, "NotAllDecisionsScheduled")])
def test_how_many_are_wanted(wanted: int, status: str) -> None:
    result = decide(placement(numberOfClusters=wanted), *clusters(2))
    assert len(result.decisions) == min(wanted, 2)
    assert reasons(result)["PlacementSatisfied"] == status


def test_a_negative_number_is_a_fault() -> None:
    result = decide(placement(numberOfClusters=-1), *clusters(2))
    assert result.decisions == ()
    assert "spec.numberOfClusters: -1 is negative" in result.conditions["PlacementMisconfigured"].message
