"""Costs: the ledger's rules, the places where Kubernetes charges in an unexpected way, and the estimate."""

from __future__ import annotations

import pytest

from dray import cel
from dray.cel.ledger import Ledger
from dray.cel.ranges import MAX, UNKNOWN, Range, fixed
from dray.cel.values import COST_LIMIT, CostLimitExceeded

DEVICE = {
    "attributes": {"model": {"string": "H100"}, "numa": {"int": 1}, "tags": {"strings": ["a", "b"]}},
    "capacity": {"memory": {"value": "80Gi"}},
}


def test_the_ledger_finds_arguments_from_the_last_to_the_first() -> None:
    ledger = Ledger()
    for id, value in ((1, "a"), (9, "left over"), (2, "b"), (1, "c")):
        ledger.record(id, value, cost=1)
    assert ledger.cost == 4
    assert ledger.take((2, 1)) == ["b", "c"]
    assert ledger.take((2,)) is None
    assert ledger.take((1, 9)) == ["a", "left over"]
    assert ledger.take((1,)) is None


def test_dropping_takes_all_above_along() -> None:
    ledger = Ledger()
    for id in (1, 2, 3):
        ledger.record(id, id)
    ledger.drop(7)
    ledger.drop(2)
    assert ledger.take((3,)) is None
    assert ledger.take((1,)) == [1]


@pytest.mark.req("4381-87")
def test_the_ledger_stops_beyond_the_limit() -> None:
    ledger = Ledger()
    ledger.record(1, None, COST_LIMIT)
    with pytest.raises(CostLimitExceeded):
        ledger.record(2, None, 1)


@pytest.mark.parametrize(
    ("expression", "cost"),
    [
        ("true", 0),
        ("has(device.attributes['d'].model)", 3),
        ("device.attributes['d'].model == 'H100'", 5),
        ("device.attributes['d'].?nope.orValue('none') == 'none'", 4),
        ("'a' in ['a', 'b']", 0),
        ("device.attributes['d'].model in ['H100']", 4),
        ("'d' in [device.driver]", 13),
        ("true ? device.attributes['d'].numa == 1 : false", 5),
        ("[1, 2].all(x, x > 0)", 11),
        ("device.attributes['d'].tags.exists(t, t == 'b')", 17),
        ("cel.bind(x, 1 + 1, true)", 0),
        ("type(1) == int", 1),
        ("lists.range(3) == [0, 1, 2]", 15),
        ("device.capacity['d'].memory.compareTo(quantity('40Gi')) >= 0", 7),
    ],
)
def test_actual_costs(expression: str, cost: int) -> None:
    assert cel.compile(expression, mode="stored").evaluate_with_cost(DEVICE, driver="d") == (True, cost)


def test_ranges_stop_at_the_largest_number() -> None:
    assert UNKNOWN.plus(fixed(1)) == Range(1, MAX)
    assert UNKNOWN.times(fixed(2)) == Range(0, MAX)
    assert UNKNOWN.scaled(0.1) == Range(0, 1844674407370955264)
    assert UNKNOWN.scaled(2.0) == Range(0, MAX)
    assert fixed(11).scaled(0.1) == fixed(2)
    assert fixed(3).union(fixed(1)) == Range(1, 3)


@pytest.mark.req("4381-51")
@pytest.mark.parametrize(
    ("expression", "estimate"),
    [
        ("device.driver == 'x'", 3),
        ("device.driver == device.driver", 11),
        ("device.attributes['d'].model == 'H100'", 5),
        ("device.attributes.all(d, d.size() > 0)", 32 * 6 + 3),
        ("device.attributes['d'].tags.all(t, t == 'x')", 64 * 5 + 5),
        ("device.allowMultipleAllocations", 2),
    ],
)
def test_estimates_use_the_limits_of_the_api(expression: str, estimate: int) -> None:
    assert cel.compile(expression).estimated_cost == estimate
