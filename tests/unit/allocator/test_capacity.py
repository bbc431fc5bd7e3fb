"""How much a request consumes of a capacity."""

from __future__ import annotations

from typing import Any

import pytest

from dray.allocator.capacity import CapacityFault, consume, fits
from dray.api import codec
from dray.api.quantity import Quantity
from dray.api.resource import DeviceCapacity

RANGE = {"validRange": {"min": "2", "step": "3", "max": "10"}}
VALUES = {"default": "1", "validValues": ["1", "4", "8"]}


def consumed(requested: str | None, value: str, policy: dict[str, Any] | None) -> str | None:
    entry = codec.decode(codec.encode({"value": value} | ({"requestPolicy": policy} if policy else {})), DeviceCapacity)
    found = consume({} if requested is None else {"m": Quantity.parse(requested)}, {"m": entry})
    return None if found is None else str(found["m"])


@pytest.mark.req("SVS-48")
@pytest.mark.parametrize(
    ("requested", "policy", "expected"),
    [
        (None, None, "10"),
        ("3", None, "3"),
        (None, {"default": "2"}, "2"),
        ("3", {"default": "2"}, "3"),
        (None, VALUES, "1"),
        ("1", VALUES, "1"),
        ("2", VALUES, "4"),
        ("9", VALUES, None),
        ("1", RANGE, "2"),
        ("2", RANGE, "2"),
        ("3", RANGE, "5"),
        ("8", RANGE, "8"),
        ("9", RANGE, None),
        ("500m", {"validRange": {"min": "250m", "step": "250m"}}, "500m"),
        ("510m", {"validRange": {"min": "250m", "step": "250m"}}, "750m"),
        ("900m", {"validRange": {"min": "250m", "step": "250m"}}, "1"),
        ("3", {"validRange": {"min": "1"}}, "3"),
        ("1500Mi", {"validRange": {"min": "1Gi", "step": "1Gi"}}, "2Gi"),
    ],
)
def test_amounts_follow_the_policy(requested: str | None, policy: dict[str, Any] | None, expected: str | None) -> None:
    assert consumed(requested, "10", policy) == expected


@pytest.mark.parametrize(
    ("requested", "policy"),
    [
        ("9223372036854775807", {"validRange": {"min": "1", "step": "2"}}),
        ("1n", {"validRange": {"min": "0", "step": "1m"}}),
        ("-1", None),
    ],
)
def test_amounts_that_cannot_be_computed_with_are_faults(requested: str, policy: dict[str, Any] | None) -> None:
    with pytest.raises(CapacityFault, match='capacity "m"'):
        consumed(requested, "10", policy)


def test_a_capacity_that_the_device_lacks_rules_it_out() -> None:
    assert consume({"x": Quantity.parse("1")}, {}) is None


@pytest.mark.parametrize(("taken", "expected"), [(0, True), (6, True), (7, False)])
def test_what_is_taken_already_counts(taken: int, expected: bool) -> None:
    capacity = {"m": DeviceCapacity(value=Quantity.parse("10"))}
    assert fits({"m": Quantity.parse("4")}, capacity, {"m": taken * 10**9}) == expected
