"""Programs: expressions over the variables of an environment of one's own."""

from __future__ import annotations

from typing import Any

import pytest

from dray import cel
from dray.cel import types
from dray.cel.checker import check
from dray.cel.environment import ANY_FIELD, Environment
from dray.cel.parser import parse
from dray.cel.planner import plan
from dray.cel.straight import straight, uncounted
from dray.cel.types import Kind, Type
from dray.cel.values import CelError, StringMap

REQUEST = Type(Kind.STRUCT, "example.Request")
WORLD = Environment(
    {"object": types.DYN, "request": REQUEST, "request.extra": types.INT},
    {
        REQUEST.name: {"name": types.STRING},
        "Object": {ANY_FIELD: types.DYN},
        "JSONPatch": {"op": types.STRING, "value": types.DYN},
    },
    frozenset({"Object", "JSONPatch"}),
)
VALUES = (StringMap({"spec": StringMap({"replicas": 3, "names": ["a", "b"]})}), StringMap({"name": "x"}), 7)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("object.spec.replicas <= 3", True),
        ("object.spec.names.all(n, n != request.name)", True),
        ("request.extra + 1", 8),
        ("has(object.spec.missing)", False),
        ("Object{spec: Object.spec{replicas: 4}}.spec.replicas", 4),
        ("Object{a: 1} == Object{a: 1}", True),
        ("dyn(Object{}) == dyn(Object.spec{})", False),
        ("type(Object.spec{}) == type(Object{})", False),
        ("[JSONPatch{op: 'add', value: object.spec.?none.orValue(5)}][0].value", 5),
        ("has(Object{?a: optional.none()}.a)", False),
    ],
)
def test_evaluates(expression: str, value: Any) -> None:
    assert cel.compile_program(expression, WORLD).evaluate(VALUES)[0] == value


@pytest.mark.parametrize(
    ("expression", "results", "message"),
    [
        ("device.driver == ''", (), "undeclared reference to 'device'"),
        ("request.nme == ''", (), "undefined field 'nme'"),
        ("request.name", (types.BOOL,), "must evaluate to bool"),
        ("1", (types.STRING, types.NULL), "must evaluate to one of [string null]"),
        ("object.flag", (types.BOOL,), "must evaluate to bool but got dyn"),
        ("true ? object.flag : false", (types.BOOL,), "must evaluate to bool but got dyn"),
        ("cel.bind(x, 1, x == 1)", (), "undeclared reference to 'cel'"),
        ("JSONPatch{opp: 'x'}", (), "undefined field 'opp'"),
        ("JSONPatch{op: 1}", (), "expected type of field 'op' is 'string' but provided type is 'int'"),
        ("Subject{}", (), "undeclared reference to 'Subject'"),
        ("JSONPatch.op{}", (), "undeclared reference to 'JSONPatch.op'"),
    ],
)
def test_refuses(expression: str, results: tuple[Type, ...], message: str) -> None:
    with pytest.raises(cel.CompileError, match=message.replace("[", r"\[")):
        cel.compile_program(expression, WORLD, *results)


def test_says_which_variables_it_uses() -> None:
    assert cel.compile_program("request.extra > 1 && [1].all(object, object > 0)", WORLD).uses == {"request.extra"}
    assert cel.compile_program("request.name == object", WORLD).uses == {"request", "object"}


def test_what_takes_long_is_postponed_and_ends_at_its_cost_limit() -> None:
    slow = cel.compile_program("lists.range(500).all(x, lists.range(500).all(y, x + y >= 0))", WORLD)
    with pytest.raises(cel.Postponed):
        slow.evaluate(VALUES, cel.NOW)
    with pytest.raises(cel.EvaluationError, match="cost limit"):
        slow.evaluate(VALUES, cel.Budget(cost_limit=50_000))
    stopped = iter([5_000])
    with pytest.raises(StopIteration):
        slow.evaluate(VALUES, cel.Budget(more=lambda: next(stopped)))


STRAIGHT = [
    "object.spec.replicas <= 3 && object.spec.replicas > 1",
    "object.spec.replicas == 3 || object.spec.missing == 1",
    "object.spec.missing == 1 || object.spec.replicas == 3",
    "has(object.spec.replicas) && !has(object.spec.none) && has(object.none.deeper)",
    "request.name == 'x' && request.name != 'a longer text than ten letters' && request.extra != 8",
    "request.name in ['x', 'y'] && request.name.startsWith('x') && 'abcdefghijkl'.contains(request.name)",
    "size(object.spec.names) == 2 && 'a' in object.spec.names && object.spec.names[0] == 'a'",
    "(object.spec.replicas + 1) * 2 == 8 && string(object.spec.replicas) + request.name == '3x'",
    "object.spec == object.spec && object.spec != object",
    "request.name.matches('^x+$') && request.name.replace('x', 'yy') == 'yy'",
    "request.name && true",
    "object.spec.replicas.missing == 1",
    "request.extra / 0 == 1 || request.extra > 1",
    "'replicas' in object.spec && object['spec']['replicas'] == 3",
    "request.extra < 7 || request.extra >= 8 || request.extra <= 6.5 || request.name < 'w' || request.extra > 6",
    "object.spec.replicas < request.name || request.extra > object.spec",
]


@pytest.mark.parametrize("expression", STRAIGHT)
def test_straight_code_says_and_costs_what_the_steps_do_or_nothing(expression: str) -> None:
    parsed = parse(expression)
    try:
        check(parsed.root, expression, WORLD)
    except cel.CompileError:
        return
    planned = plan(parsed.root, expression, WORLD)
    frame = planned.start(*VALUES)
    value = planned.run(frame)
    code = straight(planned.root)
    told = None if code is None else code(VALUES)
    light = uncounted(planned.root, {})
    assert (light is None) == (code is None)
    assert light is None or light(VALUES) == (None if told is None else told[0])
    if told is not None:
        assert told == (value, frame.ledger.cost)
    elif code is not None:
        assert isinstance(value, CelError) or "missing" in expression or "none" in expression or "/ 0" in expression


def test_most_expressions_have_straight_code() -> None:
    programs = [cel.compile_program(each, WORLD) for each in STRAIGHT[:2]]
    for program in programs:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("dray.cel.planner.Plan.start", None)  # the steps are not needed
            assert program.evaluate(VALUES)[0] is True
