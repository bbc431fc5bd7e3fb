"""The public contract: compile, evaluate, modes and limits."""

from __future__ import annotations

from typing import Any

import pytest

from dray import cel
from dray.api.quantity import Quantity
from dray.api.resource import Device, DeviceAttribute, DeviceCapacity

DRIVER = "gpu.example.com"
GPU = 'device.attributes["gpu.example.com"]'
DEVICE: dict[str, Any] = {
    "name": "gpu-0",
    "attributes": {
        "model": {"string": "H100"},
        "index": {"int": 7},
        "ecc": {"bool": True},
        "driverVersion": {"version": "535.104.5"},
        "ext.example.com/zone": {"string": "a"},
        "tags": {"strings": ["a", "b"]},
    },
    "capacity": {"memory": {"value": "2Gi"}},
}


def holds(expression: str, device: dict[str, Any] = DEVICE) -> bool:
    return cel.compile(expression).evaluate(device, driver=DRIVER)


@pytest.mark.req("4381-81", "4381-86", "SVS-52", "4381-35")
@pytest.mark.parametrize(
    "expression",
    [
        'device.driver == "gpu.example.com"',
        f'{GPU}.model == "H100"',
        f"{GPU}.index == 7 && {GPU}.ecc",
        f'{GPU}.driverVersion.isGreaterThan(semver("535.0.0"))',
        'device.capacity["gpu.example.com"].memory.compareTo(quantity("2Gi")) == 0',
        "!device.allowMultipleAllocations",
        f'{GPU}.tags.exists(tag, tag == "b")',
        f'{GPU}.tags.includes("a") && {GPU}.model.includes("H100")',
    ],
)
def test_a_device_is_seen_with_typed_values(expression: str) -> None:
    assert holds(expression)


@pytest.mark.req("4381-82")
def test_unprefixed_names_belong_to_the_drivers_domain() -> None:
    assert holds(f'{GPU}.model == "H100" && device.attributes["ext.example.com"].zone == "a"')
    other = cel.compile('"model" in device.attributes["other.example.com"]')
    assert other.evaluate(DEVICE, driver="other.example.com")
    assert not other.evaluate(DEVICE, driver=DRIVER)


@pytest.mark.req("4381-84")
def test_an_unknown_domain_is_an_empty_map_and_an_unknown_attribute_an_error() -> None:
    assert not holds('"x" in device.attributes["unknown"]')
    assert not holds('"unknown" in device.attributes')
    assert holds('device.attributes["unknown"].size() == 0')
    with pytest.raises(cel.EvaluationError, match="no such key: x"):
        holds('device.attributes["unknown"].x')
    with pytest.raises(cel.EvaluationError, match="no such key: nope"):
        holds(f"{GPU}.nope == 1")


@pytest.mark.req("4381-88", "SVS-52")
@pytest.mark.parametrize(
    "expression",
    [f"has({GPU}.nope) && {GPU}.nope == 1", f'"nope" in {GPU} && {GPU}.nope == 1', f"{GPU}.?nope.orValue(0) == 1"],
)
def test_a_guarded_expression_never_fails(expression: str) -> None:
    assert not holds(expression)
    assert holds(expression, {"attributes": {"nope": {"int": 1}}})


@pytest.mark.req("4381-85")
def test_bindings_name_a_value() -> None:
    assert holds(f'cel.bind(gpu, {GPU}, gpu.model == "H100" && gpu.ecc)')


@pytest.mark.req("4381-83")
def test_the_result_must_be_a_bool() -> None:
    with pytest.raises(cel.CompileError, match="must evaluate to bool or the unknown type, not string"):
        cel.compile("device.driver")
    with pytest.raises(cel.EvaluationError, match="type string, not bool"):
        holds(f"{GPU}.model")
    assert holds(f"{GPU}.ecc")


@pytest.mark.req("4381-246")
def test_memory_is_a_capacity_not_an_attribute() -> None:
    selector = cel.compile(f'{GPU}.memory.isGreaterThan(quantity("2Gi"))')
    with pytest.raises(cel.EvaluationError, match="no such key: memory"):
        selector.evaluate(DEVICE, driver=DRIVER)


@pytest.mark.req("4381-265")
def test_is_greater_than_is_strict() -> None:
    expression = 'device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("2Gi"))'
    assert not holds(expression)
    assert holds(expression, {"capacity": {"memory": {"value": "2049Mi"}}})


@pytest.mark.req("4381-50", "4381-52")
def test_the_length_limit_applies_to_new_expressions_in_bytes() -> None:
    longest = '"' + "x" * (10 * 1024 - 8) + '" != ""'
    assert len(longest) == 10 * 1024
    cel.compile(longest)
    for too_long in (longest + " ", '"' + "é" * (5 * 1024) + '" != ""'):
        with pytest.raises(cel.CompileError, match="too long"):
            cel.compile(too_long)
        cel.compile(too_long, mode="stored")


@pytest.mark.req("4381-51", "4381-52")
def test_the_estimate_limits_new_expressions() -> None:
    expression = "lists.range(1000).all(x, lists.range(1000).all(y, x + y >= 0))"
    with pytest.raises(cel.CompileError, match="too complex"):
        cel.compile(expression)
    assert cel.compile(expression, mode="stored").estimated_cost > 1_000_000


@pytest.mark.req("4381-87")
@pytest.mark.parametrize(
    "expression",
    [
        "lists.range(1000000).all(x, x >= 0)",
        "lists.range(999000).distinct().size() > 0",
        "cel.bind(a, lists.range(900000), cel.bind(b, a + a, cel.bind(c, b + b, (c + c).sum() > 0)))",
        'cel.bind(s, "xxxxxxxx".replace("", "yyyyyyyyyyyyy"), cel.bind(t, s.replace("y", s), t.replace("y", t)) != "")',
    ],
)
def test_an_evaluation_that_costs_too_much_is_stopped(expression: str) -> None:
    selector = cel.compile(expression, mode="stored")
    with pytest.raises(cel.EvaluationError, match="stopped"):
        selector.evaluate(DEVICE, driver=DRIVER)


def test_costs_are_reported() -> None:
    selector = cel.compile(f'{GPU}.model == "H100"')
    assert selector.evaluate_with_cost(DEVICE, driver=DRIVER) == (True, 5)
    assert selector.estimated_cost == 5
    with pytest.raises(cel.EvaluationError) as failure:
        cel.compile(f"{GPU}.nope == 1").evaluate(DEVICE, driver=DRIVER)
    assert failure.value.cost == 5


def test_compiling_again_gives_the_same_selector() -> None:
    assert cel.compile("device.driver != ''") is cel.compile("device.driver != ''", mode="stored")


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown mode"):
        cel.compile("true", mode="old")  # type: ignore[arg-type]


def test_the_expression_must_be_valid_unicode() -> None:
    with pytest.raises(cel.CompileError, match="1:4: the expression is not valid Unicode"):
        cel.compile('"ab\ud800" == ""')


def test_a_prepared_view_serves_many_selectors() -> None:
    typed = Device(
        name="gpu-0",
        attributes={"model": DeviceAttribute(string="H100"), "ports": DeviceAttribute(ints=(80, 443))},
        capacity={"memory": DeviceCapacity(value=Quantity.parse("80Gi"))},
        allow_multiple_allocations=True,
    )
    view = cel.device_view(typed, DRIVER)
    assert cel.compile(f'{GPU}.model == "H100"').matches(view)
    assert cel.compile("device.allowMultipleAllocations").matches_with_cost(view) == (True, 2)
    assert cel.compile(f"{GPU}.ports == [80, 443]").matches(view)
    assert cel.compile('device.capacity["gpu.example.com"].memory == quantity("81920Mi")').matches(view)
