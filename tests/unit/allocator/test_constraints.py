"""matchAttribute and distinctAttribute."""

from __future__ import annotations

from typing import Any

import pytest

from allocation_manifests import DRIVER, claim, device, devices_of, one_of, request, resource_slice, run
from dray.allocator import Unsatisfiable

NUMA = f"{DRIVER}/numa"


def by_numa(*values: Any) -> dict[str, Any]:
    """Devices a, b, c … with these values; None for a device without the attribute."""
    found = zip("abcdefgh", values, strict=False)
    return resource_slice(*(device(n, attributes={} if v is None else {"numa": v}) for n, v in found))


@pytest.mark.req("4381-55", "SVS-40", "4381-26")
@pytest.mark.parametrize(
    ("values", "count", "expected"),
    [
        ((0, 1, 0), 2, ["a", "c"]),
        ((0, 1, 2), 2, None),
        ((None, 1), 1, ["b"]),
        ((None,), 1, None),
        ((1, "1", 1), 2, ["a", "c"]),
        ((1, True), 2, None),
        (({"version": "1.0.0"}, {"version": "1.0.0+x"}), 2, None),
        (({"version": "1.0.0"}, {"string": "1.0.0"}), 2, None),
        (([0, 1], [1, 2], [2, 3]), 2, ["a", "b"]),
        (([0, 1], [1, 2], [2, 0]), 3, None),
        (([0, 1], 1, [1, 5]), 3, ["a", "b", "c"]),
        (("x", "X"), 2, None),
    ],
)
def test_match_needs_a_common_value_of_one_type(
    values: tuple[Any, ...], count: int, expected: list[str] | None
) -> None:
    outcome = run(by_numa(*values), claim("c", request(count=count), constraints=[{"matchAttribute": NUMA}]))
    if expected is None:
        assert isinstance(outcome, Unsatisfiable)
    else:
        assert devices_of(outcome) == expected


@pytest.mark.req("SVS-47")
@pytest.mark.parametrize(
    ("values", "count", "expected"),
    [
        ((0, 0, 1), 2, ["a", "c"]),
        ((0, 0), 2, None),
        ((None, 0), 2, None),
        ((0, "0"), 2, ["a", "b"]),
        (([0, 1], [1, 2], [2, 3]), 2, ["a", "c"]),
        (([0, 1], [1, 2], [2, 0]), 2, None),
    ],
)
def test_distinct_allows_no_value_twice(values: tuple[Any, ...], count: int, expected: list[str] | None) -> None:
    outcome = run(by_numa(*values), claim("c", request(count=count), constraints=[{"distinctAttribute": NUMA}]))
    if expected is None:
        assert isinstance(outcome, Unsatisfiable)
    else:
        assert devices_of(outcome) == expected


@pytest.mark.req("4381-54")
def test_constraints_hold_for_the_named_requests_only() -> None:
    slice_ = by_numa(0, 1, 0)
    requests = (request("r0"), request("r1"), request("r2"))
    for concerned, expected in (
        ([], None),
        (["r0", "r1"], ["r0:a", "r1:c", "r2:b"]),
        (["r1", "r2"], None),
        (["r2"], ["r0:a", "r1:b", "r2:c"]),
    ):
        constraint = {"matchAttribute": NUMA} | ({"requests": concerned} if concerned else {})
        outcome = run(slice_, claim("c", *requests, constraints=[constraint]))
        if expected is None and concerned == ["r1", "r2"]:
            assert devices_of(outcome) == ["r0:b", "r1:a", "r2:c"]
        elif expected is None:
            assert isinstance(outcome, Unsatisfiable)
        else:
            assert devices_of(outcome) == expected


@pytest.mark.req("4381-54", "SVS-41")
@pytest.mark.parametrize(("reference", "expected"), [("r", "r/s0:c"), ("r/s0", "r/s0:c"), ("r/s1", "r/s0:b")])
def test_a_constraint_may_name_an_alternative(reference: str, expected: str) -> None:
    wanted = (request("q"), one_of("r", {"count": 1}, {"count": 1}))
    constraints = [{"matchAttribute": NUMA, "requests": ["q", reference]}]
    assert devices_of(run(by_numa(0, 1, 0), claim("c", *wanted, constraints=constraints))) == ["q:a", expected]


@pytest.mark.req("4381-24", "4381-28", "4381-55")
def test_names_without_domain_belong_to_the_driver() -> None:
    root = "resource.kubernetes.io/pcieRoot"
    gpus = resource_slice(
        device("g0", attributes={root: "pci0000:00"}), device("g1", attributes={root: "pci0000:01"}), pool="gpus"
    )
    nics = resource_slice(device("n0", attributes={root: "pci0000:01"}), pool="nics", driver="nic.example.com")
    pick = (
        [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}],
        [{"cel": {"expression": f'device.driver != "{DRIVER}"'}}],
    )
    wanted = (request("gpu", selectors=pick[0]), request("nic", selectors=pick[1]))
    aligned = claim("c", *wanted, constraints=[{"matchAttribute": root}])
    assert devices_of(run(gpus, nics, aligned)) == ["gpu:g1", "nic:n0"]
    qualified = resource_slice(device("a", attributes={NUMA: 1}), device("b", attributes={"numa": 1}))
    both = claim("c", request(count=2), constraints=[{"matchAttribute": NUMA}])
    assert devices_of(run(qualified, both)) == ["a", "b"]


def test_match_and_distinct_together() -> None:
    slice_ = resource_slice(
        *(device(f"d{n}", attributes={"numa": n % 2, "slot": n // 4}) for n in range(8)),
    )
    constraints = [{"matchAttribute": NUMA}, {"distinctAttribute": f"{DRIVER}/slot"}]
    assert devices_of(run(slice_, claim("c", request(count=2), constraints=constraints))) == ["d0", "d4"]
    assert isinstance(run(slice_, claim("c", request(count=3), constraints=constraints)), Unsatisfiable)
