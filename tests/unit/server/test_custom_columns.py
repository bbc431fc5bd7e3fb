"""What columns of custom resources show: what an API server of Kubernetes shows."""

from __future__ import annotations

from typing import Any

import pytest

from dray.api.custom import CustomObject
from dray.api.generated.apiextensions import CustomResourceColumnDefinition
from dray.api.meta import ObjectMeta
from dray.api.times import Time
from dray.server.answers.tables.custom import column_of

NOW = Time("2026-06-01T12:00:00Z")
SPEC: dict[str, Any] = {
    "text": "t", "int": 5, "float": 2.5, "large": 1e21, "whole": 1000000.0, "small": 0.00001, "yes": True, "none": None,
    "map": {"b": "<&>", "a": [1, 2.5]}, "list": ["x", 1], "then": "2026-06-01T11:00:00Z",
    "later": "2026-06-02T00:00:00Z", "empty": "", "local": "2026-06-01T11:59:55.5+00:00",
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "field", "shown"),
    [
        ("string", "text", "t"),
        ("string", "int", "5"),
        ("string", "float", "2.5"),
        ("string", "large", "1e+21"),
        ("string", "whole", "1e+06"),
        ("string", "small", "1e-05"),
        ("string", "yes", "true"),
        ("string", "none", "<no value>"),
        ("string", "missing", None),
        ("string", "map", '{"a":[1,2.5],"b":"\\u003c\\u0026\\u003e"}'),
        ("string", "list", '["x",1]'),
        ("integer", "int", 5),
        ("integer", "float", 2),
        ("integer", "text", None),
        ("integer", "yes", None),
        ("number", "float", 2.5),
        ("number", "int", 5),
        ("number", "none", None),
        ("boolean", "yes", True),
        ("boolean", "text", None),
        ("date", "then", "60m"),
        ("date", "later", "<invalid>"),
        ("date", "text", "<invalid>"),
        ("date", "empty", "<unknown>"),
        ("date", "local", "5s"),
        ("date", "int", None),
    ],
)
def test_cells(kind: str, field: str, shown: object) -> None:
    assert cell(kind, f".spec.{field}") == shown


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        (".metadata.name", "o"),
        (".metadata.labels.a", "b"),
        (".kind", "Widget"),
        (".apiVersion", "example.com/v1"),
        (".spec.list[0]", "x"),
        (".spec.list[*]", "x"),
        (".spec.list[?(@ == 1)]", None),
    ],
)
def test_paths(path: str, shown: object) -> None:
    assert cell("string", path) == shown


def cell(kind: str, path: str) -> object:
    meta = ObjectMeta(name="o", labels={"a": "b"})
    obj = CustomObject(api_version="example.com/v1", kind="Widget", metadata=meta, content={"spec": SPEC})
    column = column_of(CustomResourceColumnDefinition(name="C", type=kind, json_path=path))
    assert column is not None
    return column.read(obj, NOW)
