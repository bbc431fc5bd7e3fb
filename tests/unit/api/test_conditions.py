"""Conditions are found by type and put in place; their time changes only with their status."""

from __future__ import annotations

from dray.api.conditions import find_condition, is_true, with_condition, with_conditions, without_condition
from dray.api.generated.core import PodCondition
from dray.api.meta import Condition
from dray.api.times import Time

EARLIER, NOW = Time("2026-06-01T12:00:00Z"), Time("2026-06-01T13:00:00Z")
READY = Condition(type="Ready", status="True", reason="Fine", last_transition_time=EARLIER)
OTHER = Condition(type="Other", status="False", last_transition_time=EARLIER)


def test_find() -> None:
    assert find_condition((OTHER, READY), "Ready") is READY
    assert find_condition((OTHER,), "Ready") is None
    assert is_true((OTHER, READY), "Ready")
    assert not is_true((OTHER, READY), "Other")
    assert not is_true((), "Ready")


def test_a_new_one_comes_last_and_brings_its_time() -> None:
    new = Condition(type="Ready", status="False", last_transition_time=NOW)
    assert with_condition((OTHER,), new) == (OTHER, new)


def test_another_status_brings_another_time_in_the_same_place() -> None:
    new = Condition(type="Ready", status="False", last_transition_time=NOW)
    assert with_condition((READY, OTHER), new) == (new, OTHER)


def test_another_reason_keeps_the_time() -> None:
    new = Condition(type="Ready", status="True", reason="Better", last_transition_time=NOW)
    kept = Condition(type="Ready", status="True", reason="Better", last_transition_time=EARLIER)
    assert with_condition((READY, OTHER), new) == (kept, OTHER)


def test_what_says_the_same_changes_nothing_at_all() -> None:
    known = (READY, OTHER)
    again = Condition(type="Ready", status="True", reason="Fine", last_transition_time=NOW)
    assert with_condition(known, again) is known
    assert with_conditions(known, (again, OTHER)) is known
    assert with_conditions(known, ()) is known


def test_remove() -> None:
    known = (READY, OTHER)
    assert without_condition(known, "Ready") == (OTHER,)
    assert without_condition(known, "Unknown") is known


def test_every_kind_of_condition() -> None:
    pod = PodCondition(type="Ready", status="True", last_transition_time=EARLIER)
    assert find_condition((pod,), "Ready") is pod
    assert with_condition((), pod) == (pod,)
