"""Compiling and evaluating an expression leaves nothing but what it is compiled to, whatever is wrong with it."""

from __future__ import annotations

import contextlib

import pytest

from dray.cel import selector
from dray.cel.allowance import endless
from dray.cel.errors import CompileError, EvaluationError
from dray.cel.view import device_view
from garbage import garbage_of


@pytest.mark.parametrize(
    "expression",
    [
        'device.driver == "d" && device.attributes["x.io"].a == 1 && "b" in device.attributes',
        'device.attributes["x.io"].list.all(one, one > 1) || [1, 2].exists(two, two > 3) || true',
        'device.driver.matches("a.*b")',
        'device.driver == "not ended',
        "device.nowhere",
        "1 +",
    ],
)
def test_compiling_leaves_nothing_that_knows_itself(expression: str) -> None:
    def compiled() -> None:
        with contextlib.suppress(CompileError, EvaluationError):
            made = selector._compile(expression)
            for device in ({"name": "a"}, {"name": "b", "attributes": {"x.io/a": {"int": 1}}}):
                made.work_out(device_view(device, "d"), endless)
                made.evaluate(device, "d")

    compiled()
    assert garbage_of(compiled) == {}
