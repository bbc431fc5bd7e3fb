"""Which parts of a device an expression depends on."""

from __future__ import annotations

import pytest

from dray import cel
from dray.cel.reads import Read

MODEL: Read = ("attribute", "d", "model")
MEMORY: Read = ("capacity", "d", "memory")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('device.attributes["d"].model == "x"', {MODEL}),
        ('device.attributes["d"]["model"] == "x"', {MODEL}),
        ('device.attributes.d.model == "x"', {MODEL}),
        ('has(device.attributes["d"].model)', {MODEL}),
        ('"model" in device.attributes["d"]', {MODEL}),
        ('device.attributes["d"].?model.hasValue()', {MODEL}),
        ('device.attributes["d"][?"model"].hasValue()', {MODEL}),
        ('device.capacity["d"].memory.isInteger() || device.attributes["d"].model == ""', {MODEL, MEMORY}),
        ('cel.bind(d, device.attributes["d"], d.model == "x" && has(d.size))', {MODEL, ("attribute", "d", "size")}),
        ('cel.bind(a, device.attributes, a["d"].model == "x")', {MODEL}),
        ('["x"].exists(m, device.attributes["d"].model == m)', {MODEL}),
        ('cel.bind(x, device.attributes["d"].model, x == "y")', {MODEL}),
    ],
)
def test_values_that_show_in_the_text(expression: str, expected: set[Read]) -> None:
    reads = cel.compile(expression).reads
    assert reads.values == expected
    assert (reads.everything, reads.driver, reads.allow_multiple_allocations) == (False, False, False)


def test_fields_of_the_device() -> None:
    reads = cel.compile('device.driver == "d" && device.allowMultipleAllocations').reads
    assert (reads.driver, reads.allow_multiple_allocations, reads.everything) == (True, True, False)
    nothing = cel.compile("true").reads
    assert (nothing.driver, nothing.allow_multiple_allocations, nothing.values) == (False, False, frozenset())


@pytest.mark.parametrize(
    "expression",
    [
        "device.attributes.all(d, d != '')",
        "device.attributes[device.driver].model == 'x'",
        "device.attributes['d'].size() > 0",
        "'d' in device.attributes",
        "has(device.attributes.d)",
        "device == device",
        "cel.bind(d, device.attributes['d'], d.exists(k, k == 'model'))",
        "cel.bind(d, device, d.driver == 'x' && d.attributes.size() > 0)",
        "device.driver in device.attributes['d']",
    ],
)
def test_what_does_not_show_counts_as_everything(expression: str) -> None:
    assert cel.compile(expression).reads.everything
