"""Claims that take long to find devices for: every field that may be repeated is, and thousands of devices match."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from builders import DRIVER

Devices = list[dict[str, Any]]
Claims = list[dict[str, Any]]
Case = tuple[Devices, Claims]


def _attributes(**values: int) -> dict[str, Any]:
    return {"attributes": {name: {"int": value} for name, value in values.items()}}


def _devices(count: int, make: Callable[[int], dict[str, Any]]) -> Devices:
    return [{"name": f"d{number:04}", **make(number)} for number in range(count)]


def _is(condition: str) -> dict[str, Any]:
    return {"selectors": [{"cel": {"expression": condition.replace("$", f'device.attributes["{DRIVER}"].')}}]}


def _lists(count: int, alternatives: int, make: Callable[[int, int], dict[str, Any]]) -> list[dict[str, Any]]:
    wanted = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    return [
        {
            "name": f"r{number}",
            "firstAvailable": [{"name": f"s{each}", **wanted, **make(number, each)} for each in range(alternatives)],
        }
        for number in range(count)
    ]


def _claim(requests: list[dict[str, Any]], *constraints: dict[str, Any]) -> dict[str, Any]:
    return {"devices": {"requests": requests, "constraints": list(constraints)}}


def alternatives(devices: int) -> Case:
    """As many requests and alternatives as there may be, and the last finds nothing."""
    made = _lists(32, 8, lambda number, each: _is(f"$n % {number + 9} == {each}" if number < 31 else "$n < 0"))
    return _devices(devices, lambda number: _attributes(n=number)), [_claim(made)]


def too_few(devices: int) -> Case:
    """All want one of the same few devices."""
    made = _lists(32, 8, lambda _, each: _is(f"$n < 31 && $n % 8 != {each}"))
    return _devices(devices, lambda number: _attributes(n=number)), [_claim(made)]


def matches(devices: int) -> Case:
    """All must have the same value of many attributes, and each device has a value of its own."""
    made = _lists(32, 8, lambda _, each: _is(f"$n % 8 != {each}"))
    constraints = [{"matchAttribute": f"{DRIVER}/u{number}"} for number in range(16)]
    values = {f"u{number}": number for number in range(16)}
    return _devices(devices, lambda number: _attributes(n=number, **dict.fromkeys(values, number // 31))), [
        _claim(made, *constraints)
    ]


def distinct(devices: int) -> Case:
    """No value of many attributes twice, and there are fewer values than requests."""
    made = _lists(32, 8, lambda _, each: _is(f"$n % 8 != {each}"))
    constraints = [{"distinctAttribute": f"{DRIVER}/u{number}"} for number in range(16)]
    return _devices(
        devices, lambda number: _attributes(n=number, **{f"u{each}": number % (31 + each) for each in range(16)})
    ), [_claim(made, *constraints)]


def pairs(devices: int) -> Case:
    """Each request must match the next one in another attribute."""
    wanted = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    made = [{"name": f"r{number}", "exactly": wanted} for number in range(32)]
    constraints = [
        {"matchAttribute": f"{DRIVER}/u{number % 16}", "requests": [f"r{number}", f"r{number + 1}"]}
        for number in range(31)
    ]
    return _devices(
        devices,
        lambda number: _attributes(**{f"u{each}": number * (each + 3) * 7 % (53 + each) for each in range(16)}),
    ), [_claim(made, *constraints)]


def shares(devices: int) -> Case:
    """Every device has many capacities, of which every alternative wants other amounts."""
    capacity = {f"m{number}": {"value": "100"} for number in range(8)}
    made = _lists(
        32, 8, lambda number, each: {"capacity": {"requests": {name: str(40 + each + number % 5) for name in capacity}}}
    )
    return _devices(devices, lambda _: {"allowMultipleAllocations": True, "capacity": capacity}), [_claim(made)]


def everything(devices: int) -> Case:
    """All devices, of many conditions."""
    wanted = {"allocationMode": "All", "count": None}
    made = _lists(32, 8, lambda number, each: {**_is(f"$n == {number + each}"), **wanted})
    return _devices(devices, lambda number: _attributes(n=number)), [_claim(made)]


def claims(devices: int) -> Case:
    """Many claims in one pod."""
    wanted = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}
    one = _claim([{"name": "r", "exactly": wanted}], {"matchAttribute": f"{DRIVER}/g"})
    return _devices(devices, lambda number: _attributes(g=number // 3)), [one] * 60


def too_many(devices: int) -> Case:
    """More than is looked at."""
    made = _lists(32, 8, lambda number, each: _is(f"$n % {number + 9} == {each}"))
    return _devices(devices, lambda number: _attributes(n=number)), [_claim(made)] * 3


CASES: tuple[Callable[[int], Case], ...] = (
    alternatives,
    too_few,
    matches,
    distinct,
    pairs,
    shares,
    everything,
    claims,
    too_many,
)
