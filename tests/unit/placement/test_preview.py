"""What a taint would do to placements, before anybody sets it."""

from __future__ import annotations

import pytest

from dray.api.cluster import ManagedCluster
from dray.placement import FleetObject, PlacementChange, preview_change
from placement_fleet import NOW, binding, cluster_set, decisions, managed, placement, taint

OBJECTS: list[FleetObject] = [
    cluster_set(),
    binding(),
    managed("a"),
    managed("b"),
    managed("c"),
    placement("all"),
    placement("one", numberOfClusters=1),
    placement("two", numberOfClusters=2),
    placement("patient", tolerations=[{"key": "x", "operator": "Exists", "tolerationSeconds": 90}]),
    placement("deaf", tolerations=[{"operator": "Exists"}]),
    decisions("a", of="one"),
    decisions("b", "c", of="two"),
]


def preview(changed: ManagedCluster) -> dict[str, PlacementChange]:
    return {change.placement.name: change for change in preview_change(OBJECTS, changed, NOW)}


def test_who_loses_a_cluster_and_what_they_get_instead() -> None:
    found = preview(managed("a", taint("x:NoSelect")))
    assert sorted(found) == ["all", "deaf", "one", "patient"]
    assert (found["all"].loses, found["all"].selected, found["all"].lost) == (True, 2, ("a",))
    assert found["one"].loses
    assert (len(found["one"].gained), found["one"].selected, found["one"].wanted) == (1, 1, 1)
    assert not found["one"].is_short
    assert (found["patient"].loses, found["patient"].has, found["patient"].leaves_after) == (True, True, 90.0)
    assert (found["deaf"].loses, found["deaf"].leaves_after) == (False, None)
    assert found["one"].to_dict()["placement"] == "ns1/one"


def test_who_keeps_it_for_a_time_is_told_what_comes_then() -> None:
    """One that has it for a minute and a half, and one whose other cluster goes before: each as it is when it left."""

    def waits(seconds: int) -> dict[str, object]:
        return {"key": "x", "operator": "Exists", "tolerationSeconds": seconds}

    def then(*had: str, tolerations: list[dict[str, object]]) -> PlacementChange:
        wants = placement(numberOfClusters=len(had), tolerations=tolerations)
        fleet: list[FleetObject] = [managed("a"), managed("b", taint("z:NoSelect")), managed("c"), wants]
        (change,) = preview_change(
            [cluster_set(), binding(), *fleet, decisions(*had)], managed("a", taint("x:NoSelect")), NOW
        )
        return change

    one = then("a", tolerations=[waits(90)])
    assert (one.has, one.leaves_after, one.gained, one.lost, one.selected) == (True, 90.0, ("c",), ("a",), 1)
    assert not one.is_short
    two = then("a", "b", tolerations=[waits(60), {**waits(30), "key": "z"}])
    assert (two.has, two.leaves_after, two.gained, two.lost, two.selected) == (True, 60.0, ("c",), ("a", "b"), 1)
    assert two.is_short


def test_a_placement_that_finds_nothing_else_is_short() -> None:
    objects: list[FleetObject] = [cluster_set(), binding(), managed("a"), placement(numberOfClusters=1), decisions("a")]
    (change,) = preview_change(objects, managed("a", taint("x:NoSelect")), NOW)
    assert (change.selected, change.is_short, change.gained) == (0, True, ())


@pytest.mark.req("OCM-16", "OCM-17")
@pytest.mark.parametrize("effect", ["NoSelectIfNew", "PreferNoSelect"])
def test_effects_that_take_from_nobody(effect: str) -> None:
    found = preview(managed("a", taint(f"y:{effect}")))
    assert [name for name, change in found.items() if change.loses] == []
    assert sorted(found) == ["all", "deaf", "one", "patient"]


def test_taking_a_taint_away_gives_the_cluster_back() -> None:
    objects: list[FleetObject] = [
        cluster_set(),
        binding(),
        managed("a", taint("x:NoSelect")),
        managed("b"),
        placement(),
    ]
    (change,) = preview_change(objects, managed("a"), NOW)
    assert (change.had, change.has, change.gained) == (False, True, ("a",))


def test_nobody_is_told_who_has_nothing_to_do_with_it() -> None:
    assert preview_change([*OBJECTS, managed("lonely", in_set=None)], managed("lonely", in_set=None), NOW) == []
