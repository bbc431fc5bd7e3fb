"""Grafting: a changed object is written with everything that its reader did not understand."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dray.client.documents import graft

names = st.sampled_from(["name", "a", "b", "c"])
scalars = st.one_of(st.integers(0, 3), st.sampled_from(["x", "y"]), st.booleans())
known = st.recursive(
    scalars,
    lambda inner: st.one_of(st.dictionaries(names, inner, max_size=3), st.lists(inner, max_size=3)),
    max_leaves=8,
)
objects = st.dictionaries(names, known, max_size=4)


def with_unknown(value: Any) -> Any:
    """The document of a newer server: every object in it has a field that nobody here knows."""
    if isinstance(value, dict):
        return {**{name: with_unknown(inner) for name, inner in value.items()}, "unknown": 1}
    return [with_unknown(inner) for inner in value] if isinstance(value, list) else value


def without_unknown(value: Any) -> Any:
    """How dray reads it."""
    if isinstance(value, dict):
        return {name: without_unknown(inner) for name, inner in value.items() if name != "unknown"}
    return [without_unknown(inner) for inner in value] if isinstance(value, list) else value


@given(objects, objects)
def test_what_is_known_is_as_wanted_and_what_is_unknown_stays(before: Any, after: Any) -> None:
    written = graft(with_unknown(before), before, after)
    assert without_unknown(written) == after
    assert written["unknown"] == 1


@given(objects)
def test_an_object_that_did_not_change_is_written_as_it_was(before: Any) -> None:
    assert graft(with_unknown(before), before, before) == with_unknown(before)


@given(st.lists(st.sampled_from("abcdef"), unique=True), st.randoms(use_true_random=False))
def test_entries_with_names_keep_what_is_theirs_wherever_they_go(keys: list[str], randomness: Any) -> None:
    before = [{"name": key, "value": 1} for key in keys]
    stored = [{"name": key, "value": 1, "unknown": key} for key in keys]
    after = [{"name": key, "value": 2} for key in keys[1:]] + [{"name": "new", "value": 2}]
    randomness.shuffle(after)
    for entry in graft(stored, before, after):
        assert entry.get("unknown") == (None if entry["name"] == "new" else entry["name"])
        assert entry["value"] == 2


def test_removed_parts_take_the_unknown_in_them_along() -> None:
    stored = {"spec": {"gone": {"x": 1, "unknown": 2}, "kept": 3}, "zero": 0}
    before = {"spec": {"gone": {"x": 1}, "kept": 3}}
    assert graft(stored, before, {"spec": {"kept": 4}}) == {"spec": {"kept": 4}, "zero": 0}
