"""JSON patches: every operation, what kube-apiserver is lax about, and how they fail."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from dray.server.patch import json_patch
from dray.server.patch.errors import PatchError

DOCUMENT = {
    "metadata": {"name": "p", "labels": {"a": "1", "x.com/y": "2", "m~n": "3"}},
    "list": ["a", "b", "c"],
    "null": None,
    "one": 1,
}


def op(kind: str, path: str, **members: Any) -> dict[str, Any]:
    return {"op": kind, "path": path} | {name.rstrip("_"): value for name, value in members.items()}


def at(document: Any, *keys: Any) -> Any:
    for key in keys:
        document = document[key]
    return document


@pytest.mark.parametrize(
    ("operations", "keys", "expected"),
    [
        ([op("add", "/metadata/labels/b", value="4")], ("metadata", "labels", "b"), "4"),
        ([op("add", "/metadata/labels/a", value="9")], ("metadata", "labels", "a"), "9"),
        ([op("add", "/list/-", value="d")], ("list",), ["a", "b", "c", "d"]),
        ([op("add", "/list/0", value="d")], ("list",), ["d", "a", "b", "c"]),
        ([op("add", "/list/3", value="d")], ("list",), ["a", "b", "c", "d"]),
        ([op("add", "/list/-1", value="d")], ("list",), ["a", "b", "c", "d"]),
        ([op("add", "/new")], ("new",), None),
        ([op("remove", "/list/1")], ("list",), ["a", "c"]),
        ([op("remove", "/list/-1")], ("list",), ["a", "b"]),
        ([op("replace", "/list/1", value="z")], ("list",), ["a", "z", "c"]),
        ([op("replace", "/absent", value=1)], ("absent",), 1),
        ([op("replace", "", value={"k": 1})], (), {"k": 1}),
        ([op("move", "/moved", from_="/list/0")], ("moved",), "a"),
        ([op("move", "/list/0", from_="/list/2")], ("list",), ["c", "a", "b"]),
        ([op("copy", "/list/-", from_="/metadata/name")], ("list",), ["a", "b", "c", "p"]),
        ([op("add", "/metadata/labels/x.com~1y", value="q")], ("metadata", "labels", "x.com/y"), "q"),
        ([op("add", "/metadata/labels/m~0n", value="q")], ("metadata", "labels", "m~n"), "q"),
        ([op("add", "/", value="q")], ("",), "q"),
        ([op("test", "/one", value=1.0), op("test", "/null"), op("test", "/absent", value=None)], ("one",), 1),
        ([op("test", "", value=DOCUMENT)], (), DOCUMENT),
        ([], (), DOCUMENT),
        (None, (), DOCUMENT),
    ],
)
def test_operations(operations: Any, keys: tuple[Any, ...], expected: Any) -> None:
    before = copy.deepcopy(DOCUMENT)
    assert at(json_patch.apply(DOCUMENT, operations), *keys) == expected
    assert before == DOCUMENT


@pytest.mark.parametrize(
    ("operations", "code", "message"),
    [
        ({"op": "add"}, 400, "list of operations"),
        (["add"], 400, "operation [0] must be an object"),
        ([{"op": "add", "path": 1}], 400, "[0].path must be a string"),
        ([op("nope", "/x")], 422, "Unexpected kind: nope"),
        ([None], 422, "Unexpected kind: unknown"),
        ([{"op": "add", "value": 1}], 422, "add operation missing path field"),
        ([{"op": "move", "path": "/x"}], 422, "move operation missing from field"),
        ([op("add", "", value={})], 422, "missing path"),
        ([op("add", "one", value={})], 422, "missing path"),
        ([op("add", "/absent/x", value=1)], 422, 'missing path: "/absent/x"'),
        ([op("add", "/one/x", value=1)], 422, "missing path"),
        ([op("add", "/one/x/y", value=1)], 422, "missing path"),
        ([op("add", "/null/x", value=1)], 422, "missing path"),
        ([op("remove", "/metadata/absent")], 422, "nonexistent key: absent"),
        ([op("remove", "/list/3")], 422, "invalid index: 3"),
        ([op("remove", "/list/-4")], 422, "invalid index: -4"),
        ([op("add", "/list/4", value=1)], 422, "invalid index: 4"),
        ([op("add", "/list/01", value=1)], 422, "not a proper array index: '01'"),
        ([op("replace", "/list/-", value=1)], 422, "not a proper array index: '-'"),
        ([op("replace", "", value="text")], 422, "must be object or array"),
        ([op("move", "/metadata/labels/x", from_="/metadata/labels")], 422, "missing path"),
        ([op("test", "/one", value=True)], 422, "testing value /one failed"),
        ([op("test", "/metadata/labels", value={"a": "1"})], 422, "test failed"),
        ([op("test", "/list", value=["a", "b"])], 422, "test failed"),
        ([op("test", "/one")], 422, "test failed"),
        ([op("test", "/one", value=1)] * 10_001, 413, "maximum operations in a JSON patch is 10000, got 10001"),
    ],
)
def test_failures(operations: Any, code: int, message: str) -> None:
    with pytest.raises(PatchError) as failure:
        json_patch.apply(DOCUMENT, operations)
    assert failure.value.code == code
    assert message in failure.value.message


def test_values_of_a_patch_are_never_changed() -> None:
    value: dict[str, Any] = {"inner": []}
    operations = [op("add", "/new", value=value), op("add", "/new/inner/-", value=1)]
    assert json_patch.apply({}, operations) == {"new": {"inner": [1]}}
    assert value == {"inner": []}


def test_a_copy_is_apart_from_what_it_was_made_of() -> None:
    operations = [
        op("add", "/a/x", value=1),
        op("copy", "/b", from_="/a"),
        op("add", "/b/x", value=2),
    ]
    assert json_patch.apply({"a": {}}, operations) == {"a": {"x": 1}, "b": {"x": 2}}


def test_unchanged_parts_are_shared() -> None:
    document: dict[str, Any] = {"spec": {"big": []}, "status": {}}
    patched = json_patch.apply(document, [op("add", "/status/x", value=1)])
    assert patched["spec"] is document["spec"]
    assert document["status"] == {}


def test_copies_cannot_blow_up_a_document() -> None:
    text = "x" * 1_000_000
    operations = [op("copy", f"/c{position}", from_="/a") for position in range(4)]
    with pytest.raises(PatchError, match="accumulated size increase of copy") as failure:
        json_patch.apply({"a": text}, operations)
    assert failure.value.code == 422


def test_unknown_members_are_named() -> None:
    operations = [op("test", "/one", value=1), op("add", "/x", value=1, bogus=2)]
    assert json_patch.unknown_members(operations) == ["[1].bogus"]


def test_what_a_patch_moves_in_lists_is_bounded() -> None:
    document = {"list": [0] * 200_000}
    front = [op("add", "/list/0", value=1), op("remove", "/list/0")]
    assert at(json_patch.apply(document, front * 200), "list") == document["list"]
    with pytest.raises(PatchError) as caught:
        json_patch.apply(document, front * 300)
    assert caught.value.code == 413
    assert len(at(json_patch.apply(document, [op("add", "/list/-", value=1)] * 9_000), "list")) == 209_000
