"""The generated functions agree with the steps, also where they have to hand over."""

from __future__ import annotations

from typing import Any

import pytest

from dray import cel
from dray.cel.allowance import endless
from dray.cel.ast import Node
from dray.cel.checker import check
from dray.cel.codegen import generate
from dray.cel.parser import parse
from dray.cel.planner import plan
from dray.cel.values import CelError

DEVICES: list[dict[str, Any]] = [
    {
        "attributes": {
            "s": {"string": "H100"},
            "i": {"int": 3},
            "b": {"bool": True},
            "v": {"version": "1.2.3"},
            "l": {"ints": [1, 3, 5]},
        },
        "capacity": {"q": {"value": "80Gi"}},
        "allowMultipleAllocations": True,
    },
    {
        "attributes": {
            "s": {"int": 1},
            "i": {"string": "x"},
            "b": {"int": 0},
            "v": {"string": "1.2.3"},
            "l": {"bool": True},
        }
    },
    {"attributes": {"s": {"string": ""}, "b": {"bool": False}, "l": {"ints": []}}, "capacity": {"q": {"value": "1"}}},
    {},
]

GENERATED = [
    'device.driver == "d"',
    'device.driver != "e"',
    "device.allowMultipleAllocations",
    'device.attributes["d"].s == "H100"',
    '"H100" != device.attributes["d"].s',
    'device.attributes["d"].s == "a long text of more than ten characters"',
    'device.attributes["d"].b',
    '!device.attributes["d"].b',
    'device.attributes["d"].i == 3 && device.attributes["d"].b == true',
    'device.attributes["d"].i > 2 || device.attributes["d"].s == "H100" || device.attributes["d"].b',
    '(device.attributes["d"].i >= 3 && device.attributes["d"].b) || !(device.attributes["d"].i < 3)',
    'device.attributes["d"].b ? device.attributes["d"].b : device.allowMultipleAllocations',
    'has(device.attributes["d"].s) && "s" in device.attributes["d"] && "d" in device.attributes',
    'has(device.attributes["x"].s) || "s" in device.attributes["x"]',
    'device.attributes["d"].?s.orValue("none") == "H100"',
    'device.attributes["x"].?s.orValue(true)',
    'device.attributes["d"].?s.hasValue()',
    'device.attributes["d"].s in ["H100", "L4"]',
    'device.attributes["d"].i in [1, 3]',
    'device.capacity["d"].q.compareTo(quantity("40Gi")) >= 0',
    'device.capacity["d"].q.isLessThan(quantity("40Gi"))',
    'device.attributes["d"].v.isGreaterThan(semver("1.0.0"))',
    'device.attributes["d"].v.major() == 1 && device.attributes["d"].v.patch() > 2',
    'device.attributes["d"].s.startsWith("H") && device.attributes["d"].s.endsWith("00")',
    'device.attributes["d"].s.contains("10") && device.attributes["d"].s.matches("^H[0-9]+$")',
    'cel.bind(d, device.attributes["d"], d.s == "H100" && d.b && has(d.v))',
    'cel.bind(x, device.attributes["d"].i, x == 3 || x == 4)',
    'device.attributes["d"].s == device.driver',
    'device.attributes["d"].l.all(x, x > 0)',
    'device.attributes["d"].l.exists(x, x == device.attributes["d"].i)',
    'device.attributes["d"].l.exists_one(x, x == 3)',
    '["L4", "H100"].exists(m, device.attributes["d"].s == m)',
    "lists.range(4).exists(x, x > 2)",
    "lists.range(4).all(x, lists.range(3).exists(y, y == x))",
    'device.attributes["d"].l.filter(x, x > 1).size() == 2 || true',
]


def _by_steps(root: Node, text: str, view: cel.DeviceView) -> tuple[Any, int]:
    planned = plan(root, text)
    frame = planned.start(view.root)
    value = planned.run(frame)
    return (value.message if isinstance(value, CelError) else value), frame.ledger.cost


@pytest.mark.parametrize("expression", GENERATED)
@pytest.mark.parametrize("device", DEVICES, ids=["full", "other types", "empty values", "nothing"])
def test_both_paths_agree(expression: str, device: dict[str, Any]) -> None:
    parsed = parse(expression)
    check(parsed.root, expression)
    view = cel.device_view(device, "d")
    expected = _by_steps(parsed.root, expression, view)
    code = generate(parsed.root)
    assert (code is None) == ("filter" in expression)
    if code is not None:
        assert code.light(lambda view: _by_steps(parsed.root, expression, view), _refuse)(view) == expected
        whole = code.whole(lambda view, _more: _by_steps(parsed.root, expression, view))
        assert whole(view, endless) == expected


def _refuse(view: cel.DeviceView) -> tuple[bool, int]:
    raise AssertionError(f"handed over for {view.driver}")


def test_the_usual_case_does_not_hand_over() -> None:
    view = cel.device_view(DEVICES[0], "d")
    for expression in GENERATED[:-1]:
        if '"x"' in expression or "?" in expression:
            continue
        parsed = parse(expression)
        check(parsed.root, expression)
        code = generate(parsed.root)
        assert code is not None
        code.light(_refuse, _refuse)(view)
