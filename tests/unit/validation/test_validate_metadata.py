"""The rules for metadata, and what updates may not do to it."""

from __future__ import annotations

from typing import Any

import pytest

import builders
from dray.validation.metadata import MOST_LABELS


def a_claim(**metadata: Any) -> dict[str, Any]:
    return builders.manifest(builders.V1, "ResourceClaim", "claim", meta=metadata, spec={})


OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
CASES = [
    ({}, set()),
    ({"name": "a.b-c"}, set()),
    ({"name": "A"}, {("Invalid", "name")}),
    ({"name": "a" * 254}, {("Invalid", "name")}),
    ({"name": "", "generateName": "prefix-"}, set()),
    ({"name": "", "generateName": "Prefix-"}, {("Invalid", "generateName"), ("Invalid", "name")}),
    ({"name": ""}, {("Required", "name")}),
    ({"namespace": "Not_A_Namespace"}, {("Invalid", "namespace")}),
    ({"labels": {"a/b/c": "x"}}, {("Invalid", "labels")}),
    ({"labels": {"a": "x y"}}, {("Invalid", "labels")}),
    ({"labels": {"": "x"}}, {("Invalid", "labels")}),
    ({"labels": {f"k{number}": "" for number in range(MOST_LABELS)}}, set()),
    ({"labels": {f"k{number}": "" for number in range(MOST_LABELS + 1)}}, {("TooMany", "labels")}),
    ({"annotations": {"UPPER.example.com/a": "any text"}}, set()),
    ({"annotations": {"a b": ""}}, {("Invalid", "annotations")}),
    ({"annotations": {"a": "x" * 256 * 1024}}, {("TooLong", "annotations")}),
    ({"finalizers": ["example.com/keep"]}, set()),
    ({"finalizers": ["a b"]}, {("Invalid", "finalizers"), ("Invalid", "finalizers[0]")}),
    ({"finalizers": ["kubernetes", "a"]}, {("Invalid", "finalizers[1]")}),
    ({"finalizers": ["orphan", "foregroundDeletion"]}, {("Invalid", "finalizers")}),
    ({"ownerReferences": [OWNER]}, set()),
    (
        {"ownerReferences": [{}]},
        {("Required", f"ownerReferences[0].{name}") for name in ("apiVersion", "kind", "name", "uid")},
    ),
    ({"ownerReferences": [{**OWNER, "controller": True}] * 2}, {("Invalid", "ownerReferences")}),
    ({"ownerReferences": [{**OWNER, "kind": "Event"}]}, {("Invalid", "ownerReferences[0]")}),
    ({"generation": -1}, {("Invalid", "generation")}),
    ({"managedFields": [{"manager": "m"}]}, {("Required", "managedFields[0].operation")}),
    ({"managedFields": [{"manager": "m", "operation": "X"}]}, {("NotSupported", "managedFields[0].operation")}),
]


@pytest.mark.parametrize(("metadata", "expected"), CASES)
def test_metadata_of_a_new_object(verdict: Any, metadata: dict[str, Any], expected: set[tuple[str, str]]) -> None:
    assert verdict(a_claim(**metadata)) == {(reason, f"metadata.{field}") for reason, field in expected}


def test_an_object_outside_namespaces_drops_its_namespace(verdict: Any) -> None:
    obj = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "c", "namespace": "x"}}
    assert verdict(obj) == set()


UPDATES = [
    ({"labels": {"a": "b"}}, set()),
    ({"name": "other"}, {("Invalid", "name")}),
    ({"uid": "other"}, {("Invalid", "uid")}),
    ({"deletionTimestamp": "2026-01-01T00:00:00Z"}, {("Invalid", "deletionTimestamp")}),
    ({"creationTimestamp": "2020-01-01T00:00:00Z"}, set()),
    ({"generation": 0}, set()),
]


@pytest.mark.parametrize(("metadata", "expected"), UPDATES)
def test_updates(verdict: Any, metadata: dict[str, Any], expected: set[tuple[str, str]]) -> None:
    old = a_claim(uid="u", creationTimestamp="2026-01-01T00:00:00Z", resourceVersion="7")
    new = a_claim(**{**old["metadata"], **metadata})
    assert verdict(new, old) == {(reason, f"metadata.{field}") for reason, field in expected}


@pytest.mark.req("4381-39", "4381-140")
def test_finalizers_of_an_object_that_is_being_deleted_can_only_go(verdict: Any) -> None:
    deleted = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["resource.kubernetes.io/delete-protection"]}
    old = a_claim(**deleted)
    assert verdict(a_claim(**{**deleted, "finalizers": []}), old) == set()
    more = [*deleted["finalizers"], "example.com/x"]
    assert verdict(a_claim(**{**deleted, "finalizers": more}), old) == {("Forbidden", "metadata.finalizers")}
