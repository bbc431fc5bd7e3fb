"""Rules of schemas: what they say of objects, what is wrong with them, and what they may cost."""

from __future__ import annotations

from typing import Any

import pytest

from dray.api import codec
from dray.api.field import FieldError
from dray.api.generated.apiextensions import JSONSchemaProps
from dray.cel import Postponed
from dray.cel.allowance import endless
from dray.custom.ratcheting import NOTHING
from dray.custom.rules import OutOfBudget, Run, compile_rules
from dray.custom.schema_rules import check_schema

TEXT = {"type": "string", "maxLength": 10}
NUMBER = {"type": "integer"}


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def ruled(part: dict[str, Any], *rules: Any) -> dict[str, Any]:
    return {**part, "x-kubernetes-validations": [{"rule": rule} if isinstance(rule, str) else rule for rule in rules]}


def read(found: dict[str, Any]) -> JSONSchemaProps:
    reading = codec.read(found, JSONSchemaProps)
    assert reading.obj is not None, reading.errors
    return reading.obj


def broken(found: dict[str, Any], value: Any, old: Any = NOTHING) -> list[tuple[str, str]]:
    judge = compile_rules(read(found), is_root=True)
    assert judge is not None
    problems = [problem.error() for problem in judge(value, old, Run(endless)) or ()]
    return [(problem.field, problem.message) for problem in problems]


def wrong(found: dict[str, Any]) -> list[FieldError]:
    errors: list[FieldError] = []
    check_schema(errors, read(found), "s", has_status=False, known=frozenset(), run=Run())
    return errors


@pytest.mark.parametrize(
    ("part", "rule", "good", "bad"),
    [
        (NUMBER, "self > 1", 2, 1),
        ({"type": "number"}, "self < 1.5", 1, 2),
        (TEXT, "self.startsWith('a')", "ab", "ba"),
        (schema(a=NUMBER, b=NUMBER), "!has(self.b) || self.a <= self.b", {"a": 1}, {"a": 1, "b": 0}),
        ({"type": "array", "items": NUMBER}, "self.all(x, x > 0)", [1], [1, 0]),
        ({"type": "object", "additionalProperties": NUMBER}, "self['k'] == 1", {"k": 1}, {"k": 2}),
        ({"x-kubernetes-int-or-string": True}, "type(self) == int ? self > 1 : self != ''", 2, ""),
        (
            schema(**{"a-b": NUMBER, "namespace": NUMBER}),
            "self.a__dash__b == self.__namespace__",
            {"a-b": 1, "namespace": 1},
            {"a-b": 1, "namespace": 2},
        ),
        (
            {"type": "string", "format": "date-time"},
            "self < timestamp('2030-01-01T00:00:00Z')",
            "2020-01-01T00:00:00Z",
            "2031-01-01T00:00:00Z",
        ),
        ({"type": "string", "format": "duration"}, "self > duration('1m')", "2m", "2s"),
    ],
)
def test_a_rule_sees_values_as_its_schema_types_them(part: dict[str, Any], rule: str, good: Any, bad: Any) -> None:
    whole = schema(x=ruled(part, rule))
    assert wrong(whole) == []
    assert broken(whole, {"x": good}) == []
    assert [path for path, _ in broken(whole, {"x": bad})] == ["x"]


def test_messages_reasons_and_paths() -> None:
    rules = [
        {"rule": "self.a > 1"},
        {"rule": "self.a > 2", "message": "more"},
        {"rule": "self.a > 3", "messageExpression": "'not ' + string(self.a)", "reason": "FieldValueForbidden"},
        {"rule": "self.a > 4", "message": "there", "fieldPath": ".a"},
    ]
    assert broken(schema(s=ruled(schema(a=NUMBER), *rules)), {"s": {"a": 1}}) == [
        ("s", "Invalid value: failed rule: self.a > 1"),
        ("s", "Invalid value: more"),
        ("s", "Forbidden: not 1"),
        ("s.a", "Invalid value: there"),
    ]
    inside = schema(m={"type": "object", "additionalProperties": ruled(NUMBER, "self > 1")})
    assert broken(inside, {"m": {"k": 1}}) == [("m[k]", "Invalid value: 1: failed rule: self > 1")]


def test_the_root_has_a_name() -> None:
    whole = ruled(schema(), "self.metadata.name.startsWith('a') && self.kind == 'K'")
    assert broken(whole, {"kind": "K", "metadata": {"name": "a"}}) == []
    assert broken(whole, {"kind": "K", "metadata": {"name": "b"}}) != []


def test_transitions_wait_for_a_past() -> None:
    whole = schema(n=ruled(NUMBER, "self >= oldSelf"))
    assert broken(whole, {"n": 1}) == []
    assert broken(whole, {"n": 1}, {}) == []
    assert broken(whole, {"n": 1}, {"n": 1}) == []
    assert broken(whole, {"n": 1}, {"n": 2}) != []
    optional = schema(n=ruled(NUMBER, {"rule": "oldSelf.hasValue() || self == 0", "optionalOldSelf": True}))
    assert broken(optional, {"n": 1}) != []
    assert broken(optional, {"n": 1}, {"n": 5}) == []


def test_elements_correspond_by_their_keys() -> None:
    item = ruled(schema(k=TEXT, n=NUMBER), "self.n >= oldSelf.n") | {"required": ["k"]}
    listed = {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    whole = schema(l=listed)
    assert wrong(whole) == []
    old = {"l": [{"k": "a", "n": 1}, {"k": "b", "n": 5}]}
    new = {"l": [{"k": "b", "n": 4}, {"k": "a", "n": 1}]}
    assert [path for path, _ in broken(whole, new, old)] == ["l[0]"]
    atomic = schema(l={"type": "array", "maxItems": 3, "items": ruled(NUMBER, "self >= oldSelf")})
    assert [(error.reason, error.field) for error in wrong(atomic)] == [
        ("FieldValueInvalid", "s.properties[l].items.x-kubernetes-validations[0].rule")
    ]


@pytest.mark.parametrize(
    ("rule", "reason", "field"),
    [
        ("self.nope == 1", "FieldValueInvalid", "rule"),
        ("self = 1", "FieldValueInvalid", "rule"),
        ("self.a + 1", "FieldValueInvalid", "rule"),
        ({"rule": " "}, "FieldValueRequired", "rule"),
        ({"rule": "true", "messageExpression": "1"}, "FieldValueInvalid", "messageExpression"),
        ({"rule": "true", "reason": "Odd"}, "FieldValueNotSupported", "reason"),
        ({"rule": "true", "message": "a\nb"}, "FieldValueInvalid", "message"),
        ({"rule": "true", "optionalOldSelf": True}, "FieldValueInvalid", "optionalOldSelf"),
    ],
)
def test_what_is_wrong_with_a_rule(rule: Any, reason: str, field: str) -> None:
    found = wrong(schema(s=ruled(schema(a=NUMBER), rule)))
    path = f"s.properties[s].x-kubernetes-validations[0].{field}"
    assert [(error.reason, error.field) for error in found] == [(reason, path)]


def test_what_may_cost_too_much_is_refused() -> None:
    texts = {"type": "array", "items": {"type": "string"}}
    found = wrong(schema(l=ruled(texts, "self.all(x, self.all(y, x == y))")))
    assert {error.reason for error in found} == {"FieldValueForbidden"}
    assert "exceeds budget by factor of more than 100x" in found[0].message
    bounded = {"type": "array", "maxItems": 10, "items": TEXT}
    assert wrong(schema(l=ruled(bounded, "self.all(x, self.all(y, x == y))"))) == []


def test_what_costs_too_much_ends_all_rules() -> None:
    rule = "self.all(a, self.all(b, self.all(c, a + b + c >= 0)))"
    judge = compile_rules(read(schema(l=ruled({"type": "array", "items": NUMBER}, rule))), is_root=True)
    assert judge is not None
    with pytest.raises(Postponed):
        judge({"l": list(range(150))}, NOTHING, Run())
    with pytest.raises(OutOfBudget) as failure:
        judge({"l": list(range(150))}, NOTHING, Run(endless))
    assert "call cost exceeds limit" in failure.value.problem.error().message
