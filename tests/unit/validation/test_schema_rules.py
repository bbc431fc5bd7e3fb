"""Kinds without rules of their own are held to their schema."""

from __future__ import annotations

import pytest

from builders import typed
from dray.api.meta import Object
from dray.api.registry import by_kind
from dray.api.times import Time
from dray.validation import Context
from dray.validation.schema_rules import rules_from_schema

KIND = by_kind("storagemigration.k8s.io/v1", "StorageVersionMigration")


@pytest.mark.parametrize(
    ("resource", "problems"),
    [
        ({"group": "", "resource": "pods"}, []),
        ({"group": "apps", "resource": "deployments"}, []),
        ({"group": "apps", "resource": ""}, ["spec.resource.resource: Required value"]),
    ],
)
def test_required_texts_are_not_empty_but_for_the_oldest_group(resource: dict[str, str], problems: list[str]) -> None:
    document = {"apiVersion": KIND.api_version, "kind": KIND.kind, "metadata": {"name": "m"}}
    obj = typed({**document, "spec": {"resource": resource}}, Object)
    found = rules_from_schema(KIND).validate_create(obj, Context(now=Time("2026-01-01T00:00:00Z")))
    assert [str(error) for error in found] == problems
