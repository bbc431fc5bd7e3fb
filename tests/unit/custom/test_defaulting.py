"""Defaults of a schema: how much they may add to one object."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from dray.api import codec
from dray.api.custom import CustomObject
from dray.api.generated.apiextensions import CustomResourceDefinition, JSONSchemaProps
from dray.custom.default_rules import check_defaults
from dray.custom.defaulting import MOST_BYTES, DefaultsTooLarge, compile_defaults, growth_of
from dray.custom.definition import compile_version
from dray.custom.documents import read_value
from dray.custom.kinds import CustomKind, kinds_of
from dray.server.bodies.body import is_large
from dray.validation.context import Errors

LARGE = {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string", "default": "x" * 1000}}}}
ELEMENTS = MOST_BYTES // 1000 + 1


def _schema(document: dict[str, Any]) -> JSONSchemaProps:
    read = codec.read(document, JSONSchemaProps)
    assert read.obj is not None, read.errors
    return read.obj


def _kind() -> CustomKind:
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    schema = {"type": "object", "properties": {"list": LARGE}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    status = {"acceptedNames": names}
    document = {"metadata": {"name": "widgets.example.com"}, "spec": spec, "status": status}
    read = codec.read(document, CustomResourceDefinition)
    assert read.obj is not None, read.errors
    return kinds_of(read.obj)[0]


def _widget(count: int) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w"},
        "list": [{} for _ in range(count)],
    }


def test_what_is_missing_is_set_and_what_is_there_stays() -> None:
    default = compile_defaults(_schema({"type": "object", "properties": {"list": LARGE}}))
    assert default is not None
    value = {"list": [{}, {"a": "b"}]}
    default(value)
    assert value == {"list": [{"a": "x" * 1000}, {"a": "b"}]}


@pytest.mark.parametrize("within", ["items", "additionalProperties"])
def test_a_list_or_map_does_not_multiply_a_default_without_end(within: str) -> None:
    element = LARGE["items"]
    whole = {"type": "array", "items": element} if within == "items" else {"type": "object", within: element}
    default = compile_defaults(_schema(whole))
    assert default is not None
    value: Any = [{} for _ in range(ELEMENTS)] if within == "items" else {f"k{n}": {} for n in range(ELEMENTS)}
    with pytest.raises(DefaultsTooLarge, match="would add more than"):
        default(value)


def test_each_object_has_room_of_its_own() -> None:
    default = compile_defaults(_schema(LARGE))
    assert default is not None
    for _ in range(3):
        default([{} for _ in range(ELEMENTS // 2)])


def test_such_an_object_is_refused_and_one_that_is_stored_is_shown_without() -> None:
    kind = _kind()
    refused = read_value(kind, _widget(ELEMENTS))
    assert refused.obj is None
    assert "would add more than" in refused.errors[0].message
    stored = CustomObject(kind="Widget", api_version="example.com/v1", content={"list": [{}] * ELEMENTS})
    assert kind.shown(stored).content == {"list": [{}] * ELEMENTS}
    few = CustomObject(kind="Widget", api_version="example.com/v1", content={"list": [{}]})
    assert kind.shown(few).content == {"list": [{"a": "x" * 1000}]}


def test_such_a_default_is_refused() -> None:
    errors: Errors = []
    check_defaults(errors, _schema({**LARGE, "default": [{}] * ELEMENTS}), "a")
    assert [(error.field, "would add more than" in error.message) for error in errors] == [("a.default", True)]


def test_everything_is_made_at_once_for_whoever_has_the_time() -> None:
    definition = _kind().definition
    version = compile_version(definition, definition.spec.versions[0])
    assert not version.is_compiled
    version.compile()
    assert version.is_compiled
    assert version.default is not None


TEXT = {"type": "string", "default": "x" * 50}
PART = {"type": "object", "properties": {"a": TEXT}}
LISTED = {"type": "array", "items": PART}


@pytest.mark.parametrize(
    ("properties", "content"),
    [
        ({"a": TEXT}, {}),
        ({"a": {**PART, "default": {}}}, {}),
        ({"l": LISTED}, {"l": [{}] * 20}),
        ({"l": {**LISTED, "default": [{}] * 20}}, {}),
        ({"l": {"type": "array", "items": {"type": "string", "default": "x" * 50}}}, {"l": [None] * 20}),
        ({"m": {"type": "object", "additionalProperties": PART}}, {"m": {str(number): {} for number in range(20)}}),
        ({"l": {"type": "array", "items": LISTED}}, {"l": [[{}] * 5] * 5}),
        ({"l": {"type": "array", "items": {**LISTED, "default": [{}, {}]}}}, {"l": [None] * 20}),
    ],
)
def test_how_much_defaults_may_add_is_known_before(properties: dict[str, Any], content: dict[str, Any]) -> None:
    schema = _schema({"type": "object", "properties": properties})
    before = len(msgspec.json.encode(content))
    default = compile_defaults(schema)
    assert default is not None
    filled = msgspec.json.decode(msgspec.json.encode(content))
    default(filled)
    added = len(msgspec.json.encode(filled)) - before
    assert 0 < added <= growth_of(schema).added_to(before)


def test_only_objects_that_may_become_large_are_looked_at_beside_the_loop() -> None:
    kind = _kind()
    kind.version.compile()
    assert not is_large(b"x" * 64, "application/json", kind)
    assert is_large(b"x" * 128, "application/json", kind)  # sixty elements, and each may get a thousand letters
    flat = replace(kind, version=replace(kind.version, schema=_schema({"type": "object", "properties": {"a": TEXT}})))
    flat.version.compile()
    assert not is_large(b"x" * 30_000, "application/json", flat)
