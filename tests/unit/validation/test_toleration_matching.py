"""Which taints a request tolerates, and until when."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dray.api.resource import DeviceTaint, DeviceToleration
from dray.api.resource.toleration import (
    eviction_time,
    has_effect,
    is_tolerated,
    tolerates,
    toleration_seconds,
)

ADDED = dt.datetime(2026, 6, 1, 12, tzinfo=dt.UTC)


def taint(effect: str = "NoExecute", key: str = "k", value: str = "v") -> DeviceTaint:
    return DeviceTaint(key=key, value=value, effect=effect)


def toleration(**fields: Any) -> DeviceToleration:
    return DeviceToleration(**{"key": "k", "operator": "Exists", **fields})


MATCHES = [
    ({}, taint(), True),
    ({"effect": "NoExecute"}, taint(), True),
    ({"effect": "NoSchedule"}, taint(), False),
    ({"effect": "NoExecute"}, taint("NoSchedule"), False),
    ({"key": "other"}, taint(), False),
    ({"key": ""}, taint(key="anything"), True),
    ({"operator": "Equal", "value": "v"}, taint(), True),
    ({"operator": "Equal", "value": "w"}, taint(), False),
    ({"operator": "", "value": "v"}, taint(), True),
    ({"operator": "", "value": "w"}, taint(), False),
    ({"operator": "In", "value": "v"}, taint(), False),
    ({"operator": "Equal", "value": ""}, taint(value=""), True),
]


@pytest.mark.req("5055-44", "5055-45", "5055-46", "5055-43", "5055-134")
@pytest.mark.parametrize(("fields", "mark", "expected"), MATCHES)
def test_matching(fields: dict[str, Any], mark: DeviceTaint, expected: bool) -> None:
    assert tolerates(toleration(**fields), mark) is expected


@pytest.mark.req("5055-47", "5055-48")
def test_every_taint_must_be_tolerated() -> None:
    both = (taint("NoSchedule"), taint("NoExecute"))
    assert [is_tolerated((toleration(effect="NoExecute"),), each) for each in both] == [False, True]
    every = (toleration(effect="NoExecute"), toleration(effect="NoSchedule"))
    assert all(is_tolerated(every, each) for each in both)
    assert all(is_tolerated((toleration(),), each) for each in both)


@pytest.mark.req("5055-49", "5055-52", "SVS-08")
@pytest.mark.parametrize("effect", ["None", "Explode", ""])
def test_taints_without_effect_need_no_toleration(effect: str) -> None:
    assert not has_effect(taint(effect))
    assert is_tolerated((), taint(effect))
    assert eviction_time((), taint(effect), ADDED) is None


@pytest.mark.req("5055-49")
def test_tolerating_none_changes_nothing() -> None:
    assert not is_tolerated((toleration(effect="None"),), taint("NoSchedule"))


@pytest.mark.req("5055-28", "5055-89", "5055-148")
def test_seconds_count_only_for_no_execute() -> None:
    assert toleration_seconds(toleration(toleration_seconds=5)) is None
    assert toleration_seconds(toleration(effect="NoSchedule", toleration_seconds=5)) is None
    assert toleration_seconds(toleration(effect="NoExecute", toleration_seconds=5)) == 5
    assert toleration_seconds(toleration(effect="NoExecute", toleration_seconds=-5)) == 0
    assert toleration_seconds(toleration(effect="NoExecute")) is None


EVICTIONS = [
    ((), ADDED),
    ((toleration(key="other"),), ADDED),
    ((toleration(),), None),
    ((toleration(effect="NoExecute"),), None),
    ((toleration(effect="NoExecute", toleration_seconds=60),), ADDED + dt.timedelta(seconds=60)),
    ((toleration(effect="NoExecute", toleration_seconds=0),), ADDED),
    ((toleration(effect="NoExecute", toleration_seconds=2**63 - 1),), None),
    (
        (
            toleration(effect="NoExecute", toleration_seconds=60),
            toleration(effect="NoExecute", toleration_seconds=30),
        ),
        ADDED + dt.timedelta(seconds=30),
    ),
    ((toleration(effect="NoExecute", toleration_seconds=60), toleration(effect="NoExecute")), None),
]


@pytest.mark.req("5055-85", "5055-86", "5055-87", "5055-88", "SVS-20", "SVS-21")
@pytest.mark.parametrize(("tolerations", "expected"), EVICTIONS)
def test_when_pods_have_to_leave(tolerations: tuple[DeviceToleration, ...], expected: dt.datetime | None) -> None:
    assert eviction_time(tolerations, taint(), ADDED) == expected


@pytest.mark.req("5055-44", "5055-45", "5055-46")
@given(
    st.sampled_from(["", "a", "b"]),
    st.sampled_from(["", "Equal", "Exists", "Other"]),
    st.sampled_from(["", "x", "y"]),
    st.sampled_from(["", "NoSchedule", "NoExecute", "None"]),
    st.sampled_from(["a", "b"]),
    st.sampled_from(["", "x"]),
    st.sampled_from(["NoSchedule", "NoExecute", "None"]),
)
def test_matching_is_the_conjunction_of_its_parts(
    key: str, operator: str, value: str, effect: str, taint_key: str, taint_value: str, taint_effect: str
) -> None:
    wanted = (
        effect in ("", taint_effect)
        and key in ("", taint_key)
        and (operator == "Exists" or (operator in ("", "Equal") and value == taint_value))
    )
    made = DeviceToleration(key=key, operator=operator, value=value, effect=effect)
    assert tolerates(made, taint(taint_effect, taint_key, taint_value)) is wanted
