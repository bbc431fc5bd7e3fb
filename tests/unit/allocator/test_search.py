"""Searches that are hard for plain backtracking, and budgets."""

from __future__ import annotations

from typing import Any

import pytest

from allocation_manifests import DRIVER, cel, claim, device, devices_of, node, request, resource_slice, run
from dray.allocator import Allocated, BudgetExceeded, Options, Unsatisfiable

VALUE = f"{DRIVER}/value"


def devices(*values: int) -> dict[str, Any]:
    return resource_slice(*(device(f"d{n:03}", attributes={"value": value}) for n, value in enumerate(values)))


def steps_of(*objects: dict[str, Any], wanted: tuple[str, ...] = ("c",), fits: bool) -> int:
    outcome = run(*objects, wanted=wanted)
    assert isinstance(outcome, Allocated) == fits, outcome
    assert isinstance(outcome, Allocated | Unsatisfiable)
    return outcome.steps


@pytest.mark.parametrize("count", [9, 15, 31, 63])
def test_two_requests_for_more_than_half_are_refused_at_once(count: int) -> None:
    half = (count + 1) // 2
    both = (claim("c", request(count=half)), claim("d", request(count=half)))
    assert steps_of(devices(*[0] * count), *both, wanted=("c", "d"), fits=False) == 1


@pytest.mark.parametrize("requests", [[4], [1, 1, 1, 1]])
def test_match_that_only_the_last_value_allows(requests: list[int]) -> None:
    values = [n // 3 for n in range(45)] + [99] * 4
    wanted = [request(f"r{n}", count=count) for n, count in enumerate(requests)]
    match = claim("c", *wanted, constraints=[{"matchAttribute": VALUE}])
    assert steps_of(devices(*values), match, fits=True) <= 8
    assert steps_of(devices(*values[:-1]), match, fits=False) == 1


def test_a_match_that_needs_two_constraints_at_once() -> None:
    slice_ = resource_slice(
        *(device(f"d{n:02}", attributes={"value": n // 4, "other": n % 4}) for n in range(16)),
        device("last-1", attributes={"value": 9, "other": 9}),
        device("last-2", attributes={"value": 9, "other": 9}),
    )
    constraints = [{"matchAttribute": VALUE}, {"matchAttribute": f"{DRIVER}/other"}]
    assert steps_of(slice_, claim("c", request(count=2), constraints=constraints), fits=True) <= 60


def test_requests_that_compete_are_matched_not_tried() -> None:
    """Request n accepts devices n and later: the first must not take what the last needs."""
    slice_ = devices(*range(20))
    wanted = [request(f"r{n:02}", selectors=cel(f'device.attributes["{DRIVER}"].value <= {19 - n}')) for n in range(20)]
    outcome = run(slice_, claim("c", *wanted))
    assert [entry.split(":")[1] for entry in devices_of(outcome)] == [f"d{19 - n:03}" for n in range(20)]
    assert isinstance(outcome, Allocated)
    assert outcome.steps < 500


def nested(cards: int) -> list[dict[str, Any]]:
    """Cards of 7 slices with partitions of 4, 3, 2 and 1 of them."""
    partitions = [
        device(
            f"card{card}-{size}-{n}",
            attributes={"value": size},
            consumesCounters=[{"counterSet": f"card{card}", "counters": {"slices": {"value": str(size)}}}],
        )
        for card in range(cards)
        for size, number in ((4, 1), (3, 2), (2, 3), (1, 7))
        for n in range(number)
    ]
    counters = [{"name": f"card{card}", "counters": {"slices": {"value": "7"}}} for card in range(cards)]
    return [
        resource_slice(*partitions, count=2, name="devices"),
        resource_slice(count=2, name="counters", sharedCounters=counters),
    ]


def sized(name: str, size: int, count: int) -> dict[str, Any]:
    return request(name, count=count, selectors=cel(f'device.attributes["{DRIVER}"].value == {size}'))


@pytest.mark.parametrize(
    ("requests", "fits"),
    [
        ([sized("four", 4, 3), sized("three", 3, 3)], True),
        ([sized("four", 4, 3), sized("three", 3, 4)], False),
        ([request("any", count=21)], True),
        ([request("any", count=22)], False),
        ([request("any", count=15), sized("four", 4, 2)], False),
        ([sized("two", 2, 9), sized("one", 1, 3), sized("three", 3, 1)], False),
    ],
)
def test_nested_counters(requests: list[dict[str, Any]], fits: bool) -> None:
    assert steps_of(*nested(3), claim("c", *requests), fits=fits) <= 700


@pytest.mark.req("4381-106", "4381-108", "SVS-53")
def test_the_step_budget_ends_a_search_with_a_typed_result() -> None:
    outcome = run(*nested(3), claim("c", request(count=21)), options=Options(max_steps=5))
    assert isinstance(outcome, BudgetExceeded)
    assert outcome.message == "node node-1: timed out trying to allocate devices"
    assert outcome.steps == 6


@pytest.mark.req("4381-106", "4381-219", "SVS-53")
def test_the_time_budget_reads_the_given_clock() -> None:
    readings = iter(range(10))
    options = Options(max_seconds=0.5, clock=lambda: float(next(readings)))
    assert isinstance(run(*nested(3), claim("c", request(count=21)), options=options), BudgetExceeded)
    frozen = Options(max_seconds=0.5, clock=lambda: 0.0)
    assert isinstance(run(*nested(3), claim("c", request(count=21)), options=frozen), Allocated)


@pytest.mark.req("4381-108")
def test_a_node_where_the_budget_runs_out_is_passed_over() -> None:
    easy = resource_slice(*(device(f"d{n:02}") for n in range(21)), pool="easy", nodeName="node-2")
    wanted = claim("c", request(count=21))
    outcome = run(*nested(3), node("node-2"), easy, wanted, on=None, options=Options(max_steps=5))
    assert isinstance(outcome, Allocated)
    assert outcome.node == "node-2"
    assert isinstance(run(*nested(3), wanted, on=None, options=Options(max_steps=5)), BudgetExceeded)
