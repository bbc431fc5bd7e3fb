"""Why an expression did not hold."""

from __future__ import annotations

from typing import Any

import pytest

from dray import cel
from dray.cel import selector as selector_module

VIEW = cel.device_view(
    {"attributes": {"model": {"string": "L4"}, "index": {"int": 1}}, "capacity": {"memory": {"value": "1Gi"}}}, "d"
)


def test_each_condition_with_its_position_outcome_and_values() -> None:
    selector = cel.compile(
        'device.attributes["d"].model == "H100" &&\n'
        '  (device.attributes["d"].index > 0 || true) && device.attributes["d"].nope'
    )
    conditions = selector.explain(VIEW)
    assert [(c.text, c.line, c.column, c.value, c.error is None) for c in conditions] == [
        ('device.attributes["d"].model == "H100"', 1, 1, False, True),
        ('(device.attributes["d"].index > 0 || true)', 2, 3, True, True),
        ('device.attributes["d"].nope', 2, 49, None, False),
    ]
    assert [list(c.seen.items()) for c in conditions] == [
        [(("attribute", "d", "model"), "L4")],
        [(("attribute", "d", "index"), 1)],
        [(("attribute", "d", "nope"), None)],
    ]
    assert conditions[2].error is not None
    assert "no such key: nope" in conditions[2].error


def test_conditions_inside_of_a_binding() -> None:
    selector = cel.compile('cel.bind(d, device.attributes["d"], d.model == "H100" && d.index == 1)')
    assert [(c.text, c.value) for c in selector.explain(VIEW)] == [('d.model == "H100"', False), ("d.index == 1", True)]


def test_an_expression_without_conjunction_is_one_condition() -> None:
    (only,) = cel.compile("device.driver == 'x' || false").explain(VIEW)
    assert (only.text, only.value) == ("device.driver == 'x' || false", False)


def test_a_device_that_cannot_be_evaluated() -> None:
    view = cel.device_view({"attributes": {"v": {"version": "x"}}}, "d")
    (only,) = cel.compile("true").explain(view)
    assert only.value is None
    assert only.error is not None


def test_an_expression_is_parsed_once_for_all_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = []
    real = selector_module.understood

    def counted(expression: str) -> Any:
        parsed.append(expression)
        return real(expression)

    program = cel.compile('device.driver == "counted.example.com"')
    monkeypatch.setattr(selector_module, "understood", counted)
    found = [program.explain(cel.device_view({}, f"{number}.example.com")) for number in range(20)]
    assert len(parsed) == 1
    assert [condition.value for conditions in found for condition in conditions] == [False] * 20
