"""Who carries how many placements, seen from each placement."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from dray.api.references import ObjectName
from dray.placement.ledger import Ledger
from placement_fleet import KEY, decisions

OTHER = ObjectName("ns1", "other")


def ledger(*decided: tuple[str, str]) -> Ledger:
    made = Ledger()
    for name, clusters in decided:
        made.assume(ObjectName("ns1", name), clusters)
    return made


@pytest.mark.parametrize(
    ("decided", "highest"),
    [
        ([], 0),
        ([("placement1", "ab")], 0),
        ([("other", "ab")], 1),
        ([("placement1", "a"), ("other", "a")], 1),
        ([("placement1", "a"), ("other", "a"), ("third", "a")], 2),
        ([("placement1", "ab"), ("other", "ab"), ("third", "b")], 2),
        ([("placement1", "a"), ("other", "ab"), ("third", "b")], 2),
        ([("placement1", "abc"), ("other", "d")], 1),
    ],
)
def test_the_highest_load_leaves_out_ones_own(decided: list[tuple[str, str]], highest: int) -> None:
    assert ledger(*decided).highest_load_without(KEY) == highest


def test_what_the_api_shows_counts_until_someone_decides() -> None:
    made = Ledger()
    made.observe(decisions("a", "b"))
    made.observe(decisions("c", number=2))
    assert made.decided(KEY) == {"a", "b", "c"}
    made.assume(KEY, ["x"])
    made.observe(decisions("a"))
    assert made.decided(KEY) == {"x"}
    assert made.observed_clusters(KEY) == {"a", "c"}
    assert made.loads == {"x": 1}
    made.release(KEY)
    assert made.decided(KEY) == {"a", "c"}
    assert made.loads == {"a": 1, "c": 1}


def test_an_object_can_change_hands_and_go() -> None:
    made = Ledger()
    made.observe(decisions("a"))
    moved = decisions("a", of="other")
    made.observe(replace(moved, metadata=replace(moved.metadata, name="placement1-decision-1")))
    assert (made.decided(KEY), made.decided(OTHER)) == (frozenset(), {"a"})
    made.forget_object("ns1", "placement1-decision-1")
    assert made.decided(OTHER) == frozenset()
    assert made.loads == {}


def test_objects_are_listed_in_the_order_of_their_numbers() -> None:
    made = Ledger()
    for number in (10, 2, 1):
        made.observe(decisions(f"c{number}", number=number))
    assert [name for name, _ in made.observed_objects(KEY)] == [
        f"placement1-decision-{number}" for number in (1, 2, 10)
    ]
