"""JSON merge patches: the cases of RFC 7386 that apply to objects."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from dray.server.patch import merge_patch
from dray.server.patch.errors import PatchError


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"a": "text"}, {"a": {"b": 1, "c": None}}, {"a": {"b": 1}}),
        ({"a": {"b": 1}}, {}, {"a": {"b": 1}}),
    ],
)
def test_merging(document: dict[str, Any], patch: dict[str, Any], expected: dict[str, Any]) -> None:
    before = copy.deepcopy((document, patch))
    assert merge_patch.apply(document, patch) == expected
    assert (document, patch) == before


@pytest.mark.parametrize("patch", [None, [], "text", 1])
def test_a_patch_must_be_an_object(patch: Any) -> None:
    with pytest.raises(PatchError) as failure:
        merge_patch.apply({}, patch)
    assert failure.value.code == 400


def test_nesting_that_is_too_deep_is_refused() -> None:
    patch: dict[str, Any] = {}
    for _ in range(100_000):
        patch = {"a": patch}
    with pytest.raises(PatchError, match="nested too deeply") as failure:
        merge_patch.apply({}, patch)
    assert failure.value.code == 400
    while patch:
        patch = patch.pop("a")
