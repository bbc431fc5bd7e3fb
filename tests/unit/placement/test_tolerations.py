"""Which tolerations match which taints, and until when."""

from __future__ import annotations

import pytest

from dray.api.cluster import Toleration
from dray.placement.member import ClusterTaint
from dray.placement.moments import MICROS_PER_SECOND, moment_of
from dray.placement.tolerations import Standing, find_fault, judge, matches, tolerate
from placement_fleet import NOW, taint

NOW_MOMENT = moment_of(NOW)


def mark(text: str, age: float | None = 0) -> ClusterTaint:
    made = taint(text, age)
    return ClusterTaint(
        made.key, made.value, made.effect, None if made.time_added is None else moment_of(made.time_added)
    )


def after(seconds: int) -> int:
    return NOW_MOMENT + seconds * MICROS_PER_SECOND


@pytest.mark.req("OCM-08", "OCM-09", "OCM-11", "OCM-18", "OCM-40")
@pytest.mark.parametrize(
    ("toleration", "on", "matched"),
    [
        (Toleration(key="gpu", operator="Equal", value="true"), "gpu=true:NoSelect", True),
        (Toleration(key="gpu", value="true"), "gpu=true:NoSelect", True),
        (Toleration(key="gpu", operator="Equal", value="true"), "gpu=false:NoSelect", False),
        (Toleration(key="gpu"), "gpu:NoSelect", True),
        (Toleration(key="gpu"), "gpu=true:NoSelect", False),
        (Toleration(key="gpu", operator="Exists"), "gpu=true:NoSelect", True),
        (Toleration(key="gpu", operator="Exists"), "cpu=true:NoSelect", False),
        (Toleration(operator="Exists"), "anything=x:NoSelectIfNew", True),
        (Toleration(operator="Exists", effect="NoSelect"), "gpu:NoSelect", True),
        (Toleration(operator="Exists", effect="NoSelect"), "gpu:NoSelectIfNew", False),
        (Toleration(key="gpu", operator="Exists", effect="PreferNoSelect"), "gpu:PreferNoSelect", True),
    ],
)
def test_a_toleration_matches_by_key_value_and_effect(toleration: Toleration, on: str, matched: bool) -> None:
    assert matches(toleration, mark(on)) is matched


@pytest.mark.req("OCM-08", "OCM-10", "SVS-77")
@pytest.mark.parametrize(
    ("toleration", "fault"),
    [
        (Toleration(), "an empty key"),
        (Toleration(value="true"), "an empty key"),
        (Toleration(operator="Equal"), "an empty key"),
        (Toleration(key="gpu", operator="Exists", value="true"), "value must be empty"),
        (Toleration(key="gpu", operator="Near"), "unknown operator 'Near'"),
        (Toleration(operator="Exists"), None),
        (Toleration(key="gpu"), None),
    ],
)
def test_what_is_wrong_with_a_toleration(toleration: Toleration, fault: str | None) -> None:
    found = find_fault(toleration)
    assert found is None if fault is None else found is not None and fault in found


@pytest.mark.req("OCM-12", "OCM-20", "OCM-23", "OCM-24", "X-06")
@pytest.mark.parametrize(
    ("seconds", "age", "left"),
    [
        (90, 0, 90),
        (90, 45, 45),
        (90, 89, 1),
        (90, 90, None),
        (90, 3600, None),
        (90, -60, 150),
        (0, 0, None),
        (-1, 0, None),
        (0, -60, 60),
        (2**63 - 1, 0, 2**63 - 1),
    ],
)
def test_seconds_count_from_the_time_when_the_taint_was_added(seconds: int, age: int, left: int | None) -> None:
    found = tolerate(mark("gone:NoSelect", age), (Toleration(key="gone", toleration_seconds=seconds),), NOW_MOMENT)
    assert found.tolerated is (left is not None)
    assert found.until == (None if left is None else after(left))
    assert found.expired == (after(seconds - age) if left is None else None)


@pytest.mark.req("OCM-12", "OCM-41")
def test_without_seconds_a_taint_is_tolerated_forever() -> None:
    assert tolerate(mark("gone:NoSelect", 10**9), (Toleration(key="gone"),), NOW_MOMENT) == (True, None, None)


def test_a_taint_that_does_not_say_when_it_was_added_has_used_up_every_limit() -> None:
    limited = Toleration(key="gone", toleration_seconds=10**9)
    assert not tolerate(mark("gone:NoSelect", None), (limited,), NOW_MOMENT).tolerated
    assert tolerate(mark("gone:NoSelect", None), (Toleration(key="gone"),), NOW_MOMENT).tolerated


@pytest.mark.req("OCM-13", "OCM-44", "SVS-76")
@pytest.mark.parametrize("effect", ["", "NoSelectIfNew"])
def test_seconds_do_not_count_for_no_select_if_new(effect: str) -> None:
    toleration = Toleration(key="a", effect=effect, toleration_seconds=60)
    assert tolerate(mark("a:NoSelectIfNew", 3600), (toleration,), NOW_MOMENT) == (True, None, None)


@pytest.mark.req("OCM-44")
@pytest.mark.parametrize("effect", ["", "NoSelect"])
def test_seconds_count_for_no_select_with_or_without_an_effect(effect: str) -> None:
    toleration = Toleration(key="a", effect=effect, toleration_seconds=60)
    assert not tolerate(mark("a:NoSelect", 3600), (toleration,), NOW_MOMENT).tolerated


@pytest.mark.req("OCM-22", "SVS-78")
@pytest.mark.parametrize("order", [(30, 90), (90, 30)])
def test_of_several_tolerations_the_first_to_run_out_wakes_and_the_last_one_keeps(order: tuple[int, int]) -> None:
    both = tuple(Toleration(key="a", toleration_seconds=seconds) for seconds in order)
    assert tolerate(mark("a:NoSelect"), both, NOW_MOMENT) == (True, after(30), None)
    assert tolerate(mark("a:NoSelect", 31), both, NOW_MOMENT) == (True, after(59), None)
    assert tolerate(mark("a:NoSelect", 90), both, NOW_MOMENT) == (False, None, after(0))


@pytest.mark.req("OCM-18")
def test_every_taint_must_be_tolerated() -> None:
    marks = (mark("a:NoSelect"), mark("b:NoSelect"))
    a, b = Toleration(key="a", toleration_seconds=30), Toleration(key="b", toleration_seconds=20)
    assert judge(marks, (a,), False, NOW_MOMENT) == Standing(repelled_by=marks[1])
    assert judge(marks, (a, b), False, NOW_MOMENT) == Standing(until=after(20))


@pytest.mark.req("OCM-16", "OCM-17", "OCM-47")
@pytest.mark.parametrize(
    ("effect", "decided", "standing"),
    [
        ("NoSelect", False, "repelled"),
        ("NoSelect", True, "repelled"),
        ("NoSelectIfNew", False, "repelled"),
        ("NoSelectIfNew", True, "free"),
        ("PreferNoSelect", False, "shunned"),
        ("PreferNoSelect", True, "free"),
    ],
)
def test_what_an_untolerated_taint_does_to_new_and_decided_clusters(effect: str, decided: bool, standing: str) -> None:
    found = judge((mark(f"a:{effect}"),), (), decided, NOW_MOMENT)
    assert (found.repelled_by is not None) is (standing == "repelled")
    assert (found.shunned_for is not None) is (standing == "shunned")


@pytest.mark.req("OCM-47")
def test_after_its_toleration_prefer_no_select_shuns_again_and_never_wakes_anyone() -> None:
    toleration = Toleration(key="a", toleration_seconds=60)
    assert judge((mark("a:PreferNoSelect", 59),), (toleration,), False, NOW_MOMENT) == Standing()
    shunned = judge((mark("a:PreferNoSelect", 60),), (toleration,), False, NOW_MOMENT)
    assert shunned.shunned_for is not None
    assert shunned.until is None
