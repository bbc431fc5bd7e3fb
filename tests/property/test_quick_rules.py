"""What is seen at a look of rules and of field owners is what is found by whoever takes the time."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from dray.api import codec
from dray.api.custom import CustomObject
from dray.api.generated.apiextensions import JSONSchemaProps
from dray.api.meta import ObjectMeta, OwnerReference
from dray.cel import Postponed
from dray.cel.allowance import endless
from dray.custom.plain_types import compile_fits
from dray.custom.ratcheting import NOTHING
from dray.custom.rules import OutOfBudget, Run, compile_rules
from dray.server.custom.first_fields import MOST, FirstFields
from dray.server.custom.shapes import SchemaObject
from dray.server.patch import managed
from dray.server.patch.inline import InlineDefinition
from property.test_structural_schemas import NAMES, documents, schemas

_NUMBER = {"type": "integer"}
_ITEM = {"type": "object", "properties": {"a": _NUMBER, "b": {"type": "string"}, "c": {"type": "number"}}}
_PROPERTIES = {
    "n": _NUMBER,
    "d": {"type": "number"},
    "s": {"type": "string"},
    "t": {"type": "string", "format": "date-time"},
    "w": {"type": "boolean"},
    "x": {"x-kubernetes-int-or-string": True},
    "items": {"type": "array", "items": _ITEM},
    "texts": {"type": "array", "items": {"type": "string"}},
    "doubles": {"type": "array", "items": {"type": "number"}},
    "map": {"type": "object", "additionalProperties": _ITEM},
    "o": {
        "type": "object",
        "properties": {**_ITEM["properties"], "in-side": {"type": "string"}, "in": {"type": "string"}},  # type: ignore[dict-item]  # JSON
    },
}
_RULES = (
    "self.n <= 1",
    "self.n < self.items.size() || self.n > 2",
    "self.d >= 1.0 && self.d < 2.0",
    "!has(self.s) || self.s.startsWith('x')",
    "self.items.all(i, has(i.a) && i.a > 0)",
    "self.items[0].a <= self.items[1].a",
    "self.items == self.items && self.items.exists(i, i.c == 1.0)",
    "'x' in self.texts && self.texts.size() < 3",
    "self.doubles.all(d, d < 1.5)",
    "self.doubles.all(d, type(d) == double) && self.texts.all(t, type(t) == string)",
    "self.map['k'].a == 1 || self.map.size() > 1",
    "self.t > timestamp('2020-01-01T00:00:00Z')",
    "self.w",
    "has(self.t)",
    "has(self.map) && has(self.items) && has(self.n)",
    "self.o.a > 0 && !has(self.o.b)",
    "self.o.in__dash__side == 'x' && self.o.__in__.size() == 1",
    "self.o == oldSelf.o || self.s.size() > oldSelf.texts.size()",
    "type(self.x) == int ? self.x > 1 : self.x != ''",
    "self.n > oldSelf.n",
    "self.items.size() >= oldSelf.items.size() || self == oldSelf",
    "self.n * self.n * self.n > 0",
)
_rules = st.fixed_dictionaries(
    {"rule": st.sampled_from(_RULES)},
    optional={
        "messageExpression": st.sampled_from(["string(self.n)", "self.s"]),
        "fieldPath": st.just(".n"),
    },
) | st.sampled_from(
    [{"rule": "oldSelf.hasValue() || self.n == 1", "optionalOldSelf": True}, {"rule": "true", "optionalOldSelf": True}]
)
_items = (
    st.none()
    | st.just(7)
    | st.fixed_dictionaries(
        {}, optional={"a": st.sampled_from([0, 1, 2.0, None]), "b": st.just("x"), "c": st.sampled_from([1, 1.5])}
    )
)
_values = st.fixed_dictionaries(
    {},
    optional={
        "n": st.sampled_from([0, 1, 2, 3.0, 2**62, None, "1"]),
        "d": st.sampled_from([1, 1.5, 2]),
        "s": st.sampled_from(["x", "y", None, ["x"]]),
        "t": st.sampled_from(["2024-01-01T00:00:00Z", "no time"]),
        "w": st.sampled_from([True, False, "true"]),
        "x": st.sampled_from([1, 2, "", "a"]),
        "items": st.lists(_items, max_size=3),
        "texts": st.lists(st.sampled_from(["x", "y", 1, None]), max_size=3),
        "doubles": st.lists(st.sampled_from([1, 1.5, None]), max_size=3),
        "map": st.dictionaries(st.sampled_from(["k", "l"]), _items, max_size=2),
        "o": _items | st.just({"a": 1, "in-side": "x", "in": "y"}),
    },
)


def _told(schema: JSONSchemaProps, value: Any, old: Any, run: Run) -> Any:
    judge = compile_rules(schema)
    assert judge is not None
    try:
        return [(one.error(), one.is_transition) for one in judge(value, old, run) or ()]
    except OutOfBudget as error:
        return error.problem.error()


@example([{"rule": "self.doubles.all(d, type(d) == double)"}], {"doubles": [1, 1.5]}, NOTHING)
@given(st.lists(_rules, min_size=1, max_size=4), _values, _values | st.just(NOTHING))
def test_rules_say_in_a_hurry_what_they_say_with_time(rules: list[Any], value: Any, old: Any) -> None:
    whole = {"type": "object", "properties": _PROPERTIES, "x-kubernetes-validations": rules}
    schema = codec.read({"type": "object", "properties": {"spec": whole}}, JSONSchemaProps).obj
    assert schema is not None
    before = NOTHING if old is NOTHING else {"spec": old}
    given_values = copy.deepcopy((value, old)) if old is not NOTHING else copy.deepcopy((value,))
    try:
        quick = _told(schema, {"spec": value}, before, Run())
    except Postponed:
        return
    assert quick == _told(schema, {"spec": value}, before, Run(endless))
    assert ((value, old) if old is not NOTHING else (value,)) == given_values


_keyed = st.fixed_dictionaries(
    {
        "type": st.just("array"),
        "x-kubernetes-list-type": st.just("map"),
        "x-kubernetes-list-map-keys": st.just(["a"]),
        "items": st.just({"type": "object", "properties": {"a": {"type": "string"}}}),
    }
)
_whole = st.builds(
    lambda schema, part: {**schema, "properties": {**schema["properties"], **part}},
    schemas,
    st.dictionaries(st.sampled_from(NAMES), _keyed, max_size=1),
)
_names = st.dictionaries(st.sampled_from(["k", "l"]), st.just("v"), max_size=2)
_metadata = st.builds(
    ObjectMeta,
    name=st.sampled_from(["n", "m"]),
    generate_name=st.sampled_from(["", "g-"]),
    labels=_names,
    annotations=_names,
    finalizers=st.sampled_from([(), ("f/x",)]),
    owner_references=st.sampled_from([(), (OwnerReference(api_version="v1", kind="K", name="o", uid="1"),)]),
)


@given(_whole, st.lists(st.tuples(_metadata, documents), min_size=1, max_size=6))
def test_objects_with_one_outline_set_the_same_fields(schema: Any, contents: list[Any]) -> None:
    found = codec.read(schema, JSONSchemaProps).obj
    assert found is not None
    shape = SchemaObject(found, is_resource=True)
    definition = InlineDefinition((), shape, {"": {"f:b": {}}})

    def find(new: CustomObject) -> Any:
        return managed.first_fields({"metadata": codec.to_builtins(new.metadata), **new.content}, definition)

    first = FirstFields(shape, find)
    for meta, content in contents:
        new = CustomObject(kind="K", metadata=meta, content=content)
        assert first.of(new) == find(new)


def test_names_of_parts_are_told_apart() -> None:
    part = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "object"}}}
    deep = {**part, "properties": {**part["properties"], "c": part}}  # type: ignore[dict-item]  # JSON
    found = codec.read({"type": "object", "properties": {"s": deep, "t": deep}}, JSONSchemaProps).obj
    assert found is not None
    shape = SchemaObject(found, is_resource=True)
    definition = InlineDefinition((), shape, {})

    def find(new: CustomObject) -> Any:
        return managed.first_fields(new.content, definition)

    first = FirstFields(shape, find)
    parts: list[Any] = [None, {}, {"a": "x"}, {"c": {"a": "x"}}, {"c": {"b": {}}}, {"c": {"b": {"free": 1}}}, {"u": 1}]
    for one in parts:
        for other in parts:
            new = CustomObject(content={"s": one, "t": other})
            assert first.of(new) == find(new)


def test_few_outlines_are_remembered() -> None:
    shape = SchemaObject(
        JSONSchemaProps(properties={f"f{number}": JSONSchemaProps(type="string") for number in range(MOST * 2)}),
        is_resource=True,
    )
    asked: list[CustomObject] = []

    def find(new: CustomObject) -> Any:
        asked.append(new)
        return {"f:" + name: {} for name in new.content}

    first = FirstFields(shape, find)
    for _ in range(3):
        assert first.of(CustomObject(content={"f1": "x"})) == {"f:f1": {}}
    assert len(asked) == 1
    for number in range(MOST):
        first.of(CustomObject(content={f"f{number + 2}": "x"}))
    assert first.of(CustomObject(content={"f1": "x"})) == {"f:f1": {}}
    assert len(asked) == MOST + 2
    long = CustomObject(content={"f1": "x"}, metadata=ObjectMeta(labels={"l" * 5_000: ""}))
    assert first.of(long) == first.of(long)
    assert asked[-2:] == [long, long]


@given(schemas, st.lists(documents, min_size=2, max_size=4), st.lists(st.integers(0, 3), max_size=8))
def test_what_was_found_right_is_right_the_second_time(schema: Any, values: list[Any], order: list[int]) -> None:
    found = codec.read(schema, JSONSchemaProps).obj
    assert found is not None
    fits = compile_fits(found)
    if fits is not None:
        for number in order:
            value = values[number % len(values)]
            assert fits(value) == (compile_fits(found) or fits)(value)
