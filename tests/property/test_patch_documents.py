"""JSON and merge patches against naive twins, and the laws of merging."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dray.server.patch import json_patch, merge_patch
from dray.server.patch.errors import PatchError

names = st.sampled_from(["a", "b", "c/d", "e~f"])
scalars = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "x"])
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=8
)
documents = st.dictionaries(names, values, max_size=4)


def without_nulls(value: Any) -> Any:
    """Plain values as a merge patch makes them anew: the members of objects that are null are gone."""
    if isinstance(value, list):
        return [without_nulls(inner) for inner in value]
    if isinstance(value, dict):
        return {name: without_nulls(inner) for name, inner in value.items() if inner is not None}
    return value


steps = names | st.sampled_from(["0", "1", "-1", "-", "9"])
pointers = st.lists(steps, min_size=1, max_size=3).map(
    lambda keys: "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in keys)
)
operations = st.fixed_dictionaries(
    {
        "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]),
        "path": pointers,
        "from": pointers,
        "value": values,
    }
)


class MismatchError(Exception):
    """The twin cannot carry out an operation."""


def twin(document: Any, patch: list[dict[str, Any]]) -> Any:
    """JSON patches as one would write them down first: on a deep copy, one operation after the other."""
    document = copy.deepcopy(document)
    for operation in copy.deepcopy(patch):
        kind, path, origin = operation["op"], operation["path"], operation["from"]
        if kind == "add":
            put(document, path, operation["value"], insert=True)
        elif kind == "remove":
            take(document, path)
        elif kind == "replace":
            put(document, path, operation["value"], insert=False)
        elif kind == "move":
            put(document, path, take(document, origin), insert=True)
        elif kind == "copy":
            put(document, path, copy.deepcopy(look(document, origin)), insert=True)
        elif not json_patch.equal(look(document, path), operation["value"]):
            raise MismatchError
    return document


def holder(document: Any, path: str) -> tuple[Any, Any]:
    keys = [key.replace("~1", "/").replace("~0", "~") for key in path.split("/")[1:]]
    for key in keys[:-1]:
        document = child(document, key)
    if not isinstance(document, dict | list):
        raise MismatchError
    return document, keys[-1]


def child(parent: Any, key: str) -> Any:
    if isinstance(parent, dict):
        return parent.get(key)
    if isinstance(parent, list):
        return parent[position(key, len(parent))]
    raise MismatchError


def position(key: str, length: int) -> int:
    if key not in [str(index) for index in range(-length, length)]:
        raise MismatchError
    return int(key) % length


def look(document: Any, path: str) -> Any:
    return child(*holder(document, path))


def put(document: Any, path: str, value: Any, *, insert: bool) -> None:
    parent, key = holder(document, path)
    if isinstance(parent, dict):
        parent[key] = value
    elif not insert:
        parent[position(key, len(parent))] = value
    elif key == "-":
        parent.append(value)
    else:
        parent.insert(position(key, len(parent) + 1), value)


def take(document: Any, path: str) -> Any:
    parent, key = holder(document, path)
    if isinstance(parent, dict) and key not in parent:
        raise MismatchError
    return parent.pop(key if isinstance(parent, dict) else position(key, len(parent)))


@given(documents, st.lists(operations, max_size=4))
def test_json_patches_do_what_their_twin_does(document: dict[str, Any], patch: list[dict[str, Any]]) -> None:
    before = copy.deepcopy((document, patch))
    try:
        expected = twin(document, patch)
    except MismatchError:
        expected = None
    if expected is None:
        with pytest.raises(PatchError) as failure:
            json_patch.apply(document, patch)
        assert failure.value.code == 422
    else:
        assert json_patch.apply(document, patch) == expected
    assert (document, patch) == before


@given(documents, documents)
def test_merging_twice_is_merging_once(document: dict[str, Any], patch: dict[str, Any]) -> None:
    once = merge_patch.apply(document, patch)
    assert merge_patch.apply(once, patch) == once


@given(documents)
def test_an_empty_patch_changes_nothing(document: dict[str, Any]) -> None:
    assert merge_patch.apply(document, {}) == document


@given(documents)
def test_a_patch_on_nothing_is_the_patch_without_nulls(patch: dict[str, Any]) -> None:
    assert merge_patch.apply({}, patch) == without_nulls(patch)


@given(documents, documents)
def test_a_patch_can_say_any_change(old: dict[str, Any], new: dict[str, Any]) -> None:
    new = without_nulls(new)
    patch = difference(old, new)
    before = copy.deepcopy((old, patch))
    assert merge_patch.apply(old, patch) == new
    assert (old, patch) == before


def difference(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The merge patch that makes one object of another."""
    patch: dict[str, Any] = {name: None for name in old if name not in new}
    for name, value in new.items():
        known = old.get(name)
        patch[name] = difference(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return patch
