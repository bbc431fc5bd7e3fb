"""Repeated fields of JSON objects are found, however the document is written, as a plain walk finds them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dray.api.codec import DecodeError, duplicate_fields

names = st.sampled_from(["a", "b", 'c"', "d\\", 'e":', "f :", "é"])
spaces = st.sampled_from(["", " ", "\n", "\t "])


def documents() -> st.SearchStrategy[str]:
    """JSON texts with repeated names, spaces in odd places and quotes inside of strings."""
    texts = ['"\\u0022:"', '"x\\":"', '"\\u003a"', '"\\u003A:"', '"\\\\u003a"']
    leaves = st.one_of(names.map(json.dumps), st.sampled_from(["1", "null", "true", *texts]))

    def nested(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        pairs = st.tuples(names, spaces, spaces, inner).map(lambda it: f"{json.dumps(it[0])}{it[1]}:{it[2]}{it[3]}")
        objects = st.lists(pairs, max_size=4).map(lambda found: "{" + ",".join(found) + "}")
        lists = st.lists(inner, max_size=3).map(lambda found: "[" + ", ".join(found) + "]")
        return st.one_of(objects, lists)

    return st.recursive(leaves, nested, max_leaves=12)


def repeats(text: str) -> bool:
    """Whether any object names a field twice, found by looking at every pair."""
    found = False

    def look(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal found
        found = found or len({name for name, _ in pairs}) < len(pairs)
        return dict(pairs)

    json.loads(text, object_pairs_hook=look)
    return found


@given(documents())
def test_repeated_fields_are_found_where_there_are_any(text: str) -> None:
    assert bool(duplicate_fields(text.encode())) == repeats(text)


@pytest.mark.parametrize("text", ['{"a":1,"a":"\\u003a"}', '{"a":1,"a":"\\u003A"}'])
def test_a_colon_that_is_written_as_a_number_hides_no_field(text: str) -> None:
    assert duplicate_fields(text.encode()) == ("a",)


@given(documents())
def test_who_has_read_a_document_finds_the_same(text: str) -> None:
    assert duplicate_fields(text.encode(), json.loads(text)) == duplicate_fields(text.encode())


def test_paths_of_repeated_fields() -> None:
    assert duplicate_fields(b'{"a":[{"b":1,"b":2}],"c":1,"c":2}') == ("c", "a[0].b")


@pytest.mark.parametrize("data", [b"{", b"\xff", b"[" * 100_000, b""])
def test_what_is_not_json_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        duplicate_fields(data)
