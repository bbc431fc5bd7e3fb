"""Devices as input."""

from __future__ import annotations

from typing import Any

import pytest

from dray import cel
from dray.api.semver import Semver


def attributes(**values: Any) -> cel.DeviceView:
    return cel.device_view({"attributes": values}, "d")


def test_values_are_converted_by_type() -> None:
    view = attributes(
        a={"int": 1},
        b={"bool": True},
        c={"string": "x"},
        d={"version": "1.2.3"},
        e={"ints": [1]},
        f={"bools": [True]},
        g={"strings": ["x"]},
        h={"versions": ["1.2.3"]},
    )
    version = Semver.parse("1.2.3")
    assert view.error is None
    assert view.attributes == {
        "d": {"a": 1, "b": True, "c": "x", "d": version, "e": [1], "f": [True], "g": ["x"], "h": [version]}
    }


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"version": "1.2"}, "not a semantic version"),
        ({"versions": ["1.0.0", "x"]}, "not a semantic version"),
        ({}, "unsupported attribute value"),
        ({"int": True}, "expected int, not bool"),
        ({"int": 2**63}, "does not fit 64 bits"),
    ],
)
def test_one_bad_value_fails_every_expression(value: dict[str, Any], reason: str) -> None:
    view = attributes(good={"int": 1}, bad=value)
    for expression in ("true", 'device.driver == "d"', 'device.attributes["d"].good == 1'):
        with pytest.raises(cel.EvaluationError, match=f"attribute bad: .*{reason}"):
            cel.compile(expression).matches(view)


def test_a_bad_capacity_fails_every_expression() -> None:
    view = cel.device_view({"capacity": {"memory": {"value": "1p"}}}, "d")
    with pytest.raises(cel.EvaluationError, match="capacity memory"):
        cel.compile("true").matches(view)


@pytest.mark.req("5027-24")
def test_a_removed_attribute_is_not_seen_as_null() -> None:
    view = attributes(gone=None, there={"int": 1})
    assert not cel.compile('has(device.attributes["d"].gone)').matches(view)
    assert not cel.compile('"gone" in device.attributes["d"]').matches(view)
    assert cel.compile('device.attributes["d"].size() == 1').matches(view)


def test_bools_and_ints_are_told_apart() -> None:
    view = attributes(flag={"bool": True}, number={"int": 1})
    assert not cel.compile('device.attributes["d"].flag == dyn(1)').matches(view)
    assert not cel.compile('device.attributes["d"].number in [true]').matches(view)
    assert cel.compile('device.attributes["d"].number in [1]').matches(view)
