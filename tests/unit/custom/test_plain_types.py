"""What is seen to be right in one step takes a time that is bounded: nobody else runs meanwhile."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from dray.api import codec
from dray.api.generated.apiextensions import CustomResourceDefinitionVersion, JSONSchemaProps
from dray.custom import documents
from dray.custom.definition import Version, compile_version
from dray.custom.plain_types import LARGEST, MOST_FIELDS, MOST_TYPES, compile_fits


def schema_of(properties: dict[str, Any]) -> JSONSchemaProps:
    found = codec.read({"type": "object", "properties": properties}, JSONSchemaProps).obj
    assert found is not None
    return found


def numbered(count: int, part: dict[str, Any]) -> dict[str, Any]:
    return {f"field{number}": part for number in range(count)}


@pytest.mark.parametrize(("count", "is_made"), [(MOST_FIELDS, True), (MOST_FIELDS + 1, False)])
def test_names_are_looked_for_among_few(count: int, is_made: bool) -> None:
    """Among 16,000, in another order, it took a second and a half for one object."""
    wide = {"type": "object", "properties": numbered(count, {"type": "integer"})}
    assert (compile_fits(schema_of({"spec": wide})) is not None) == is_made


def test_a_schema_needs_few_types() -> None:
    part: dict[str, Any] = {"type": "object"}
    for _ in range(3):
        part = {"type": "object", "properties": numbered(8, part)}
    assert MOST_TYPES < 8**3
    assert compile_fits(schema_of({"spec": part})) is None


class Asked(Exception):
    """Somebody looked at all of it in one step."""


@pytest.mark.parametrize(("size", "is_asked"), [(10, True), (LARGEST, False)])
def test_large_objects_are_looked_at_part_by_part(size: int, is_asked: bool) -> None:
    version: Version = compile_version(cast(Any, None), CustomResourceDefinitionVersion(name="v1", schema=None))

    def ask(_content: Any) -> bool:
        raise Asked

    version.__dict__["fits"] = ask
    kind = cast(Any, type("Kind", (), {"version": version}))
    body = json.dumps({"kind": "K", "metadata": {"name": "n"}, "spec": "x" * size}).encode()
    if is_asked:
        with pytest.raises(Asked):
            documents.read_json(kind, body, find_duplicates=False)
    else:
        assert documents.read_json(kind, body, find_duplicates=False).obj is not None
