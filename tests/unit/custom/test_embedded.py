"""Objects inside of custom objects: how their metadata is read."""

from __future__ import annotations

from typing import Any

import pytest

from dray.api import codec
from dray.api.generated.apiextensions import JSONSchemaProps
from dray.custom import embedded

INNER = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}


def read(document: dict[str, Any]) -> tuple[list[str], list[str]]:
    schema = codec.read(
        {"type": "object", "properties": {"one": INNER, "list": {"type": "array", "items": INNER}}}, JSONSchemaProps
    ).obj
    assert schema is not None
    places = embedded.compile_places(schema)
    assert places is not None
    unknown, errors = embedded.read(places, document)
    return unknown, [error.field for error in errors]


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"labels": {"a": 1}}, "list[0].metadata.labels[a]"),
        ({"generation": []}, "list[0].metadata.generation"),
        ("text", "list[0].metadata"),
        ([], "list[0].metadata"),
    ],
)
def test_metadata_of_a_wrong_type_cannot_be_read(metadata: Any, field: str) -> None:
    assert read({"list": [{"metadata": metadata}]}) == ([], [field])


def test_names_are_texts() -> None:
    assert read({"one": {"kind": 1, "apiVersion": None}}) == ([], ["one.apiVersion", "one.kind"])


def test_metadata_keeps_what_is_known_of_it() -> None:
    given = {"name": "a", "unheard": 1, "creationTimestamp": None}
    document = {"one": {"metadata": given, "spec": {"unheard": 1}}, "list": [{"metadata": None}, {}]}
    assert read(document) == (["one.metadata.unheard"], [])
    assert document == {"one": {"metadata": {"name": "a"}, "spec": {"unheard": 1}}, "list": [{"metadata": {}}, {}]}


def test_where_there_can_be_none_nobody_looks() -> None:
    schema = codec.read({"type": "object", "properties": {"one": {"type": "string"}}}, JSONSchemaProps).obj
    assert schema is not None
    assert embedded.compile_places(schema) is None
    assert embedded.compile_embedded(schema) is None
