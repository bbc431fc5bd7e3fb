"""What requests ask for: modes, counts, classes, selectors, adminAccess, alternatives, several claims."""

from __future__ import annotations

from typing import Any

import pytest

from allocation_manifests import (
    DRIVER,
    cel,
    claim,
    device,
    device_class,
    devices_of,
    held,
    one_of,
    request,
    resource_slice,
    run,
)
from dray.allocator import Allocated, Failed, Unsatisfiable

THREE = resource_slice(device("a"), device("b"), device("c"))


@pytest.mark.req("4381-40", "4381-96")
def test_no_requests_need_no_devices() -> None:
    outcome = run(claim("c"))
    assert isinstance(outcome, Allocated)
    assert outcome.allocations["ns/c"].devices.results == ()


@pytest.mark.req("4381-46")
@pytest.mark.parametrize(
    ("asked", "expected"),
    [({}, ["a"]), ({"count": 2}, ["a", "b"]), ({"allocationMode": "ExactCount", "count": 3}, ["a", "b", "c"])],
)
def test_exact_count_takes_the_first_devices(asked: dict[str, Any], expected: list[str]) -> None:
    assert devices_of(run(THREE, claim("c", request(**asked)))) == expected


@pytest.mark.req("4381-46", "4381-92")
def test_more_than_there_are_does_not_fit() -> None:
    assert isinstance(run(THREE, claim("c", request(count=4))), Unsatisfiable)
    assert isinstance(run(THREE, claim("c", request("r0", count=2), request("r1", count=2))), Unsatisfiable)


@pytest.mark.req("4381-45", "implied-17")
def test_unknown_mode_is_refused_by_name() -> None:
    outcome = run(THREE, claim("c", request(allocationMode="Some")))
    assert isinstance(outcome, Failed)
    assert outcome.error == "claim ns/c, request r: unsupported allocation mode Some"


@pytest.mark.req("SVS-47")
def test_unknown_constraint_is_refused_by_number() -> None:
    outcome = run(THREE, claim("c", request(), constraints=[{"requests": ["r"]}]))
    assert isinstance(outcome, Failed)
    assert "claim ns/c, constraint #0" in outcome.error


@pytest.mark.req("4381-43", "4381-98")
@pytest.mark.parametrize(
    ("class_name", "message"), [("", "missing device class name"), ("other", "device class other not found")]
)
def test_class_must_be_named_and_exist(class_name: str, message: str) -> None:
    outcome = run(THREE, claim("c", request(deviceClassName=class_name)))
    assert isinstance(outcome, Failed)
    assert "claim ns/c, request r: " + message in outcome.error


def test_derived_attributes_are_refused() -> None:
    derived = [{"name": "x.example.com/y", "expression": "1"}]
    outcome = run(THREE, claim("c", request(derivedAttributes=derived)))
    assert isinstance(outcome, Failed)
    assert "derived attributes are not supported" in outcome.error


@pytest.mark.req("4381-44", "4381-91", "4381-97")
def test_all_selectors_of_class_and_request_must_hold() -> None:
    slice_ = resource_slice(
        device("a", attributes={"model": "A", "numa": 0}),
        device("b", attributes={"model": "B", "numa": 0}),
        device("c", attributes={"model": "B", "numa": 1}),
    )
    model = f'device.attributes["{DRIVER}"].model == "B"'
    numa = f'device.attributes["{DRIVER}"].numa == 1'
    assert devices_of(run(slice_, claim("c", request(selectors=cel(model))))) == ["b"]
    assert devices_of(run(slice_, claim("c", request(selectors=cel(model, numa))))) == ["c"]
    with_class = device_class("gpu", model)
    assert devices_of(run(slice_, with_class, claim("c", request()))) == ["b"]
    assert devices_of(run(slice_, with_class, claim("c", request(selectors=cel(numa))))) == ["c"]
    assert isinstance(run(slice_, with_class, claim("c", request(selectors=cel("false")))), Unsatisfiable)


@pytest.mark.req("SVS-51")
def test_a_failing_selector_aborts_only_when_the_device_is_looked_at() -> None:
    slice_ = resource_slice(device("a", attributes={"x": 1}), device("b"))
    expression = f'device.attributes["{DRIVER}"].x == 1'
    assert devices_of(run(slice_, claim("c", request(selectors=cel(expression))))) == ["a"]
    outcome = run(slice_, claim("c", request(count=2, selectors=cel(expression))))
    assert isinstance(outcome, Failed)
    assert outcome.error.startswith(f"claim ns/c: selector #0 on device {DRIVER}/p/b: CEL runtime error: ")
    # A device in use is not looked at.
    in_use = held("other", "b")
    assert isinstance(run(slice_, in_use, claim("c", request(count=2, selectors=cel(expression)))), Unsatisfiable)


@pytest.mark.req("SVS-51")
def test_a_device_with_an_unreadable_value_fails_every_selector() -> None:
    readable = device("a", attributes={"x": 1, "v": {"version": "1.0.0"}})
    unreadable = device("b", attributes={"x": 1, "v": {"version": "one"}})
    wanted = request(count=2, selectors=cel(f'device.attributes["{DRIVER}"].x == 1'))
    both = resource_slice(readable, {**readable, "name": "c"})
    assert devices_of(run(both, claim("c", wanted))) == ["a", "c"]
    assert isinstance(run(resource_slice(readable, unreadable), claim("c", wanted)), Failed)


@pytest.mark.req("SVS-51")
def test_a_class_selector_that_does_not_compile_names_the_class() -> None:
    outcome = run(THREE, device_class("gpu", "device.driver + 1"), claim("c", request()))
    assert isinstance(outcome, Failed)
    assert outcome.error.startswith("class gpu: selector #0: CEL compile error: ")


@pytest.mark.req("4381-47", "SVS-43")
def test_all_means_every_matching_device_and_at_least_one() -> None:
    assert devices_of(run(THREE, claim("c", request(allocationMode="All")))) == ["a", "b", "c"]
    assert isinstance(run(claim("c", request(allocationMode="All"))), Unsatisfiable)
    assert isinstance(run(THREE, held("other", "b"), claim("c", request(allocationMode="All"))), Unsatisfiable)


@pytest.mark.req("4381-47")
def test_all_with_a_constraint_that_cannot_hold_is_an_error() -> None:
    slice_ = resource_slice(device("a", attributes={"numa": 0}), device("b", attributes={"numa": 1}))
    constraints = [{"matchAttribute": f"{DRIVER}/numa"}]
    outcome = run(slice_, claim("c", request(allocationMode="All"), constraints=constraints))
    assert isinstance(outcome, Failed)
    assert f"cannot add device {DRIVER}/p/b" in outcome.error


@pytest.mark.req("4381-47", "4381-48")
def test_admin_access_ignores_and_does_not_cause_allocations() -> None:
    slice_ = resource_slice(device("a"))
    admin = claim("c", request(adminAccess=True))
    assert devices_of(run(slice_, held("other", "a"), admin)) == ["a"]
    everything = claim("c", request(allocationMode="All", adminAccess=True))
    assert devices_of(run(slice_, held("other", "a"), everything)) == ["a"]
    assert devices_of(run(slice_, held("monitor", "a", adminAccess=True), claim("c", request()))) == ["a"]


@pytest.mark.req("4381-48")
def test_admin_access_gets_a_device_once_per_claim() -> None:
    slice_ = resource_slice(device("a"))
    twice = claim("c", request("r0", adminAccess=True), request("r1", adminAccess=True))
    assert isinstance(run(slice_, twice), Unsatisfiable)


@pytest.mark.req("4381-65")
@pytest.mark.parametrize(("count", "fits"), [(32, True), (33, False)])
def test_a_claim_holds_at_most_32_devices(count: int, fits: bool) -> None:
    slice_ = resource_slice(*(device(f"d{n:02}") for n in range(40)))
    outcome = run(slice_, claim("c", request(count=count)))
    if fits:
        assert len(devices_of(outcome)) == 32
    else:
        assert isinstance(outcome, Failed)
        assert "number of requested devices 33 exceeds the claim limit of 32" in outcome.error


@pytest.mark.req("SVS-41")
def test_the_first_alternative_that_fits_is_taken() -> None:
    alternatives = one_of("r", {"count": 4}, {"count": 2}, {"count": 1})
    outcome = run(THREE, claim("c", alternatives))
    assert devices_of(outcome) == ["a", "b"]
    assert isinstance(outcome, Allocated)
    assert {r.request for r in outcome.allocations["ns/c"].devices.results} == {"r/s1"}


@pytest.mark.req("SVS-41")
def test_an_alternative_gives_way_to_a_later_request() -> None:
    outcome = run(THREE, claim("c", one_of("r", {"count": 3}, {"count": 2}), request("q")))
    assert devices_of(outcome) == ["r/s1:a", "r/s1:b", "q:c"]


@pytest.mark.req("4381-65", "SVS-41")
def test_alternatives_that_grow_too_large_together_are_passed_over() -> None:
    slice_ = resource_slice(*(device(f"d{n:02}") for n in range(60)))
    outcome = run(
        slice_, claim("c", one_of("r", {"count": 30}, {"count": 1}), one_of("q", {"count": 20}, {"count": 5}))
    )
    assert isinstance(outcome, Allocated)
    assert {r.request for r in outcome.allocations["ns/c"].devices.results} == {"r/s1", "q/s0"}


@pytest.mark.req("4381-92", "4381-93")
def test_claims_are_allocated_together_or_not_at_all() -> None:
    outcome = run(THREE, claim("c", request(count=2)), claim("d", request()), wanted=("c", "d"))
    assert devices_of(outcome, "c") == ["a", "b"]
    assert devices_of(outcome, "d") == ["c"]
    both = (claim("c", request(count=2)), claim("d", request(count=2)))
    assert isinstance(run(THREE, *both, wanted=("c", "d")), Unsatisfiable)


def test_an_earlier_claim_gives_way_to_a_later_one() -> None:
    slice_ = resource_slice(device("a", attributes={"x": 1}), device("b", attributes={"x": 2}))
    picky = claim("d", request(selectors=cel(f'device.attributes["{DRIVER}"].x == 1')))
    outcome = run(slice_, claim("c", request()), picky, wanted=("c", "d"))
    assert devices_of(outcome, "c") == ["b"]
    assert devices_of(outcome, "d") == ["a"]


def test_an_allocated_claim_is_refused() -> None:
    outcome = run(THREE, held("c", "a"))
    assert isinstance(outcome, Failed)
    assert outcome.error == "claim ns/c is allocated already"


def test_an_unknown_node_is_refused() -> None:
    outcome = run(THREE, claim("c", request()), on="node-9")
    assert isinstance(outcome, Failed)
    assert outcome.error == "node node-9 not found"
