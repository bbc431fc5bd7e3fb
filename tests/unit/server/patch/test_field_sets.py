"""Sets of fields: algebra, texts, and trees that others wrote."""

from __future__ import annotations

from typing import Any

import pytest

from dray.server.patch import fields
from dray.server.patch.fields import FieldSet

A: FieldSet = {"f:a": {}}
AB: FieldSet = {"f:a": {".": {}, "f:b": {}}}
ONLY_AB: FieldSet = {"f:a": {"f:b": {}}}
C: FieldSet = {"f:c": {}}


@pytest.mark.parametrize(
    ("left", "right", "union", "intersection", "difference"),
    [
        (A, {}, A, {}, A),
        ({}, A, A, {}, {}),
        (A, A, A, A, {}),
        (A, C, {**A, **C}, {}, A),
        (A, ONLY_AB, AB, {}, A),
        (ONLY_AB, A, AB, {}, ONLY_AB),
        (AB, A, AB, A, ONLY_AB),
        (A, AB, AB, A, {}),
        (AB, ONLY_AB, AB, ONLY_AB, A),
        (ONLY_AB, AB, AB, ONLY_AB, {}),
        (AB, AB, AB, AB, {}),
    ],
)
def test_algebra(
    left: FieldSet, right: FieldSet, union: FieldSet, intersection: FieldSet, difference: FieldSet
) -> None:
    assert fields.union(left, right) == union
    assert fields.intersection(left, right) == intersection
    assert fields.difference(left, right) == difference


@pytest.mark.parametrize(
    ("found", "roots", "expected"),
    [
        (AB, A, {}),
        (AB, ONLY_AB, A),
        (ONLY_AB, ONLY_AB, {}),
        ({**AB, **C}, A, C),
        ({"f:a": {"f:b": {"f:c": {}}, "f:d": {}}}, ONLY_AB, {"f:a": {"f:d": {}}}),
        (A, ONLY_AB, A),
    ],
)
def test_subtrees(found: FieldSet, roots: FieldSet, expected: FieldSet) -> None:
    assert fields.without_subtrees(found, roots) == expected


def test_paths_read_as_in_messages() -> None:
    found: FieldSet = {
        "f:metadata": {"f:labels": {"f:a": {}}, "f:finalizers": {'v:"x.com/y"': {}}},
        "f:spec": {
            "f:containers": {'k:{"name":"a"}': {".": {}, "f:image": {}}},
            "f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {}},
        },
    }
    assert list(fields.paths(found)) == [
        ".metadata.labels.a",
        '.metadata.finalizers[="x.com/y"]',
        '.spec.containers[name="a"]',
        '.spec.containers[name="a"].image',
        '.spec.ports[containerPort=80,protocol="TCP"]',
    ]


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (None, {}),
        ({"f:a": {".": {}}}, A),
        (AB, AB),
        ({'k:{"b": 1, "a": "x"}': {}}, {'k:{"a":"x","b":1}': {}}),
        ({'v: "x"': {}}, {'v:"x"': {}}),
        ({"z:later": {"f:a": {}}, "f:c": {}}, C),
    ],
)
def test_reading(tree: Any, expected: FieldSet) -> None:
    assert fields.read(tree) == expected


@pytest.mark.parametrize(
    "tree", [[], "f:a", {"f:a": 1}, {"k:x": {}}, {"k:{}": {}}, {"k:[1]": {}}, {"v:": {}}, {"x": {}}]
)
def test_what_is_no_set_is_refused(tree: Any) -> None:
    with pytest.raises(fields.FieldSetError):
        fields.read(tree)


def test_equal_sets_are_held_once() -> None:
    first = fields.shared({"f:a": {"f:b": {}}})
    assert fields.shared({"f:a": {"f:b": {}}}) is first
    assert first == ONLY_AB


def test_steps_are_written_in_order_whatever_order_they_came_in() -> None:
    tree: fields.FieldSet = {"f:spec": {'k:{"name":"c"}': {"f:name": {}, "f:image": {}, ".": {}}, "f:a": {}}}
    assert list(fields.shared(tree)["f:spec"]) == ["f:a", 'k:{"name":"c"}']
    assert list(fields.shared(tree)["f:spec"]['k:{"name":"c"}']) == [".", "f:image", "f:name"]
