"""Decision groups: named ones first, none larger than asked for."""

from __future__ import annotations

from typing import Any

import pytest

from placement_fleet import decide, decisions, managed, placement, reasons

CLUSTERS = [managed(f"cluster{number}", labels={"region": ("us", "ap", "eu")[number % 3]}) for number in range(1, 7)]


def region(name: str, region: str) -> dict[str, Any]:
    return {"groupName": name, "groupClusterSelector": {"labelSelector": {"matchLabels": {"region": region}}}}


def strategy(*groups: dict[str, Any], size: int | str | None = None) -> dict[str, Any]:
    shown: dict[str, Any] = {"decisionGroups": list(groups)}
    return {"groupStrategy": shown | ({} if size is None else {"clustersPerDecisionGroup": size})}


@pytest.mark.req("SVS-80")
@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (strategy(), [("", "123456")]),
        (strategy(size="100%"), [("", "123456")]),
        (strategy(size=100), [("", "123456")]),
        (strategy(size=0), [("", "123456")]),
        (strategy(size=4), [("", "1234"), ("", "56")]),
        (strategy(size="50%"), [("", "123"), ("", "456")]),
        (strategy(size="34%"), [("", "123"), ("", "456")]),
        (strategy(size="1%"), [("", str(number)) for number in range(1, 7)]),
        (strategy(region("x", "eu")), [("x", "25"), ("", "1346")]),
        (strategy(region("x", "eu"), region("x", "us")), [("x", "25"), ("x", "36"), ("", "14")]),
        (strategy(region("x", "eu"), region("y", "eu")), [("x", "25"), ("", "1346")]),
        (strategy(region("x", "eu"), size=1), [("x", "2"), ("x", "5"), ("", "1"), ("", "3"), ("", "4"), ("", "6")]),
        (strategy(region("x", "moon")), [("", "123456")]),
    ],
)
def test_how_clusters_are_divided(chosen: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    result = decide(placement(decisionStrategy=chosen), *CLUSTERS)
    names = [(group.name, "".join(name.removeprefix("cluster") for name in group.clusters)) for group in result.groups]
    assert names == expected
    assert [group.index for group in result.groups] == list(range(len(expected)))
    assert result.decisions == tuple(name for group in result.groups for name in group.clusters)


def test_without_clusters_there_is_one_empty_group() -> None:
    (group,) = decide(placement(decisionStrategy=strategy(size=2))).groups
    assert (group.index, group.name, group.clusters) == (0, "", ())


@pytest.mark.parametrize(
    "chosen",
    [
        strategy(size="many"),
        strategy(size="5"),
        strategy(size="%"),
        strategy(size="inf%"),
        strategy(size="1e999%"),
        strategy(
            {
                "groupName": "x",
                "groupClusterSelector": {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
            }
        ),
    ],
)
def test_a_faulty_strategy_empties_the_decisions_and_says_so(chosen: dict[str, Any]) -> None:
    result = decide(placement(decisionStrategy=chosen), *CLUSTERS, decisions("cluster1"))
    assert result.decisions == ()
    assert reasons(result)["PlacementMisconfigured"] == "Misconfigured"
    assert "spec.decisionStrategy.groupStrategy" in result.conditions["PlacementMisconfigured"].message
