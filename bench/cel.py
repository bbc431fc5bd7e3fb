"""How long selectors take: to compile, and to judge a device that was prepared once. Run by `make bench`."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

from dray import cel

COMPILE_LIMIT_US = 1000.0
EVALUATE_LIMIT_US = 1.5

EXPRESSIONS = {
    "driver": 'device.driver == "gpu.example.com"',
    "model and memory": (
        'device.attributes["gpu.example.com"].model == "H100" && '
        'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0'
    ),
    "binding": 'cel.bind(d, device.attributes["gpu.example.com"], d.model == "H100" && d.preallocate)',
    "version": 'device.attributes["gpu.example.com"].driverVersion.isGreaterThan(semver("535.0.0"))',
}
DEVICE: dict[str, Any] = {
    "attributes": {
        "model": {"string": "H100"},
        "preallocate": {"bool": True},
        "driverVersion": {"version": "550.54.15"},
        "uuid": {"string": "GPU-123e4567-e89b-12d3-a456-426614174000"},
        "index": {"int": 3},
    },
    "capacity": {"memory": {"value": "80Gi"}, "cores": {"value": "132"}},
}
EXPENSIVE = 'lists.range(60000).filter(x, x >= 0).map(x, string(x)).exists(s, s == "x")'


def run() -> dict[str, Any]:
    """Times in microseconds, the best of several rounds, with the limits they have to keep."""
    view = cel.device_view(DEVICE, "gpu.example.com")
    results: dict[str, Any] = {}
    for name, expression in EXPRESSIONS.items():
        compile_us = _best(partial(_compile_anew, expression), rounds=7, calls=40)
        evaluate_us = _best(partial(cel.compile(expression).matches_with_cost, view), rounds=7, calls=20_000)
        results[name] = {
            "compile_us": compile_us,
            "compile_of_limit": round(compile_us / COMPILE_LIMIT_US, 3),
            "evaluate_us": evaluate_us,
            "evaluate_of_limit": round(evaluate_us / EVALUATE_LIMIT_US, 3),
        }
    results["prepare_view_us"] = _best(lambda: cel.device_view(DEVICE, "gpu.example.com"), rounds=5, calls=2_000)
    results["whole_budget_s"] = round(_until_stopped(EXPENSIVE, view), 3)
    return results


_numbers = count()


def _compile_anew(expression: str) -> None:
    """Compile a text that was never compiled before: the same one with a comment."""
    cel.compile(f"{expression} // {next(_numbers)}")


def _best(action: Callable[[], object], *, rounds: int, calls: int) -> float:
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            action()
        best = min(best, (time.perf_counter() - start) / calls)
    return round(best * 1e6, 3)


def _until_stopped(expression: str, view: cel.DeviceView) -> float:
    """How long it takes to use up the cost limit, in seconds."""
    selector = cel.compile(expression, mode="stored")
    start = time.perf_counter()
    try:
        selector.matches(view)
    except cel.EvaluationError:
        return time.perf_counter() - start
    raise AssertionError("the expression was expected to exceed the cost limit")
