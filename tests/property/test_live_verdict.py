"""One verdict, live: what is said of a pod before it comes is what the running scheduler makes of it."""

from __future__ import annotations

import pytest

from verdict_world import find_differences, find_odd_differences, find_rare_differences

STATES = range(100)


@pytest.mark.parametrize("first", range(STATES.start, STATES.stop, 25))
def test_what_is_said_of_a_pod_is_what_becomes_of_it(first: int) -> None:
    assert [why for number in range(first, first + 25) for why in find_differences(number)] == []


@pytest.mark.parametrize("first", range(STATES.start, STATES.stop, 25))
def test_so_it_is_in_odd_states_that_change(first: int) -> None:
    assert [why for number in range(first, first + 25) for why in find_odd_differences(number)] == []


@pytest.mark.parametrize("first", range(STATES.start, STATES.stop, 25))
def test_so_it_is_in_rare_states(first: int) -> None:
    """18: a pod of a group said who would go for it alone, and nobody went, for the group fits nowhere."""
    assert [why for number in range(first, first + 25) for why in find_rare_differences(number)] == []


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (142, "another scheduler"),
        (180, "the order of a gang's pods"),
        (302, "a share of a device whose counters are overdrawn"),
        (2278, "who goes for a pod once a claim that nobody uses is out of the way"),
        (3174, "a share that is held of a device that is shared no more"),
        (3542, "extended resources of the pod that stops a gang"),
        (4813, "a claim that nobody uses, and nodes that are known to lack devices"),
    ],
)
def test_what_was_once_told_apart_in_odd_states(number: int, why: str) -> None:
    assert find_odd_differences(number) == [], why


@pytest.mark.parametrize(
    ("number", "why"), [(32, "priority class"), (120, "nominated"), (348, "nominated, in a preview")]
)
def test_what_was_once_told_apart(number: int, why: str) -> None:
    assert find_differences(number) == [], why
