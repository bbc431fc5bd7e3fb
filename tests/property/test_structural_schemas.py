"""Compiled schemas say what a schema says when it is read part by part, for all small schemas and documents."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dray.api import codec
from dray.api.generated.apiextensions import JSONSchemaProps
from dray.custom.defaulting import compile_defaults
from dray.custom.list_types import compile_list_types
from dray.custom.plain_types import compile_fits
from dray.custom.pruning import compile_pruning
from dray.custom.value_checks import compile_checks

Schema = dict[str, Any]
NAMES = ("a", "b", "c")

_scalars = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("string")}, optional={"maxLength": st.integers(0, 2), "default": st.just("d")}
    ),
    st.fixed_dictionaries({"type": st.just("string"), "enum": st.just(["", "x"])}),
    st.fixed_dictionaries(
        {"type": st.just("integer")}, optional={"minimum": st.integers(-1, 1), "default": st.just(1)}
    ),
    st.just({"type": "boolean"}),
    st.just({"x-kubernetes-int-or-string": True}),
)
_nullable = st.fixed_dictionaries({}, optional={"nullable": st.just(True)})


def _objects(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    return st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)},
        optional={
            "required": st.lists(st.sampled_from(NAMES), max_size=2, unique=True),
            "x-kubernetes-preserve-unknown-fields": st.just(True),
            "default": st.just({}),
        },
    )


def _holders(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    lists = st.fixed_dictionaries(
        {"type": st.just("array"), "items": inner},
        optional={"maxItems": st.integers(0, 2), "x-kubernetes-list-type": st.sampled_from(["atomic", "set"])},
    )
    maps = st.fixed_dictionaries({"type": st.just("object"), "additionalProperties": inner})
    return st.builds(lambda one, more: {**one, **more}, st.one_of(lists, maps, _objects(inner)), _nullable)


schemas = _objects(
    st.recursive(st.builds(lambda one, more: {**one, **more}, _scalars, _nullable), _holders, max_leaves=6)
)
documents = st.dictionaries(
    st.sampled_from(NAMES),
    st.recursive(
        st.sampled_from([None, True, False, 0, 1, 2, "", "x", "xyz", 1.5]),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
        max_leaves=8,
    ),
    max_size=3,
)


def part_of(schema: Schema, name: str) -> Schema | None:
    found: Schema | None = schema.get("properties", {}).get(name)
    return found if found is not None else schema.get("additionalProperties")


def pruned(schema: Schema, value: Any) -> Any:
    if isinstance(value, dict) and schema.get("type") == "object":
        keeps = schema.get("x-kubernetes-preserve-unknown-fields", False)
        parts = {name: (part_of(schema, name), inner) for name, inner in value.items()}
        return {
            name: pruned(part, inner) if part is not None else inner
            for name, (part, inner) in parts.items()
            if part is not None or keeps
        }
    if isinstance(value, list) and schema.get("type") == "array":
        return [pruned(schema["items"], inner) for inner in value]
    return value


def defaulted(schema: Schema, value: Any) -> Any:
    def whole(part: Schema, inner: Any) -> Any:
        is_missing = inner is None and not part.get("nullable") and "default" in part
        return defaulted(part, copy.deepcopy(part["default"]) if is_missing else inner)

    if isinstance(value, dict) and schema.get("type") == "object":
        made = dict(value)
        for name, part in schema.get("properties", {}).items():
            if name not in made and "default" in part:
                made[name] = copy.deepcopy(part["default"])
        parts = {name: part_of(schema, name) for name in made}
        return {name: inner if (part := parts[name]) is None else whole(part, inner) for name, inner in made.items()}
    if isinstance(value, list) and schema.get("type") == "array":
        return [whole(schema["items"], inner) for inner in value]
    return value


def is_good(schema: Schema, value: Any) -> bool:
    kind = schema.get("type")
    if value is None:
        return bool(schema.get("nullable"))
    match value:
        case bool():
            fits = kind == "boolean"
        case int():
            fits = kind == "integer" or kind is None
        case float():
            fits = False
        case str():
            fits = kind == "string" or kind is None
        case dict():
            fits = kind == "object"
        case _:
            fits = kind == "array"
    if not fits:
        return False
    if isinstance(value, dict):
        parts = [(part_of(schema, name), inner) for name, inner in value.items()]
        return all(name in value for name in schema.get("required", ())) and all(
            part is None or is_good(part, inner) for part, inner in parts
        )
    if isinstance(value, list):
        if len(value) > schema.get("maxItems", len(value)):
            return False
        if schema.get("x-kubernetes-list-type") == "set" and len({repr(inner) for inner in value}) < len(value):
            return False
        return all(is_good(schema["items"], inner) for inner in value)
    if isinstance(value, str):
        return len(value) <= schema.get("maxLength", 9) and value in schema.get("enum", [value])
    return bool(value >= schema.get("minimum", value))


@given(schemas, documents)
def test_a_compiled_schema_says_what_the_schema_says(schema: Schema, document: Any) -> None:
    reading = codec.read(schema, JSONSchemaProps)
    assert reading.obj is not None, reading.errors
    found = reading.obj
    value = copy.deepcopy(document)
    prune = compile_pruning(found)
    dropped = prune(value) if prune is not None else None
    assert value == pruned(schema, document)
    assert (dropped is not None) == (value != document)
    default = compile_defaults(found)
    if default is not None:
        default(value)
    assert value == defaulted(schema, pruned(schema, document))
    problems = [check(value) for check in (compile_checks(found), compile_list_types(found)) if check is not None]
    assert all(one is None for one in problems) == is_good(schema, value)


_more_scalars = st.one_of(
    _scalars,
    st.fixed_dictionaries(
        {"type": st.just("string")},
        optional={
            "pattern": st.sampled_from(["^x", "z$"]),
            "format": st.sampled_from(["date", "int32"]),
            "minLength": st.integers(-1, 2),
            "enum": st.just(["x", "xyz"]),
        },
    ),
    st.fixed_dictionaries(
        {"type": st.sampled_from(["integer", "number"])},
        optional={
            "minimum": st.sampled_from([0, 0.5, 1, 2**60]),
            "maximum": st.sampled_from([1, 1.5]),
            "exclusiveMaximum": st.booleans(),
            "multipleOf": st.just(2),
            "enum": st.just([1, 2]),
        },
    ),
    st.just({"x-kubernetes-preserve-unknown-fields": True}),
    st.just({"anyOf": [{"type": "string"}], "type": "string"}),
)
_more_schemas = _objects(
    st.recursive(st.builds(lambda one, more: {**one, **more}, _more_scalars, _nullable), _holders, max_leaves=6)
)


@given(_more_schemas, documents)
def test_what_is_known_to_be_right_is_changed_and_refused_by_nobody(schema: Schema, document: Any) -> None:
    found = codec.read(schema, JSONSchemaProps).obj
    assert found is not None
    fits = compile_fits(found)
    if fits is None:
        return
    value = copy.deepcopy(document)
    takes_it = fits(value)
    (compile_pruning(found) or (lambda _: None))(value)
    (compile_defaults(found) or (lambda _: None))(value)
    check = compile_checks(found)
    is_right = check is None or check(value) is None
    if takes_it:
        assert is_right
        assert value == document
    else:
        assert value != document or not is_right  # nobody else need look at what is right
