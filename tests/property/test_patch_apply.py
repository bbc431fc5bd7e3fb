"""Invariants of server-side apply and of keeping track of updates."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dray.api import schema
from dray.server.patch import compare, fields, shape
from dray.server.patch.apply import apply
from dray.server.patch.errors import ConflictsError
from dray.server.patch.fields import FieldSet
from dray.server.patch.managed import Write, first_fields, track_update

POD = schema.for_kind("", "v1", "Pod")
SHAPE = shape.of(POD)
Document = dict[str, Any]

texts = st.sampled_from(["1", "2"])
labels = st.dictionaries(st.sampled_from(["a", "b"]), texts, min_size=1, max_size=2)


def named(**parts: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Document]]:
    element = st.fixed_dictionaries({"name": st.sampled_from(["x", "y", "z"])}, optional=parts)
    return st.lists(element, min_size=1, max_size=3, unique_by=lambda found: found["name"])


# Nothing is empty: an object as it is stored leaves out what is.
tolerations = st.lists(st.fixed_dictionaries({"key": texts}), min_size=1, max_size=2)
containers = named(image=texts, env=named(value=texts), resources=st.fixed_dictionaries({"limits": labels}))
specs = st.fixed_dictionaries(
    {}, optional={"containers": containers, "tolerations": tolerations, "hostname": texts, "nodeSelector": labels}
)
metadata = st.fixed_dictionaries(
    {"name": st.just("p")},
    optional={
        "labels": labels,
        "finalizers": st.lists(st.sampled_from(["x/a", "x/b"]), min_size=1, max_size=2, unique=True),
    },
)
pods = st.fixed_dictionaries(
    {"apiVersion": st.just("v1"), "kind": st.just("Pod"), "metadata": metadata}, optional={"spec": specs}
)
managers = st.sampled_from(["m1", "m2"])


def at(manager: str, second: int = 0) -> Write:
    return Write(POD, manager, f"2026-06-01T12:00:{second:02}Z")


def stored(new: Document, managed: list[Document]) -> Document:
    return {**new, "metadata": {**new["metadata"], "managedFields": managed}}


def history(writes: list[tuple[str, Document]]) -> Document | None:
    """An object that several managers applied by force, one after the other."""
    live: Document | None = None
    for second, (manager, applied) in enumerate(writes):
        live = stored(*apply(live, applied, at(manager, second), force=True))
    return live


histories = st.lists(st.tuples(managers, pods), min_size=1, max_size=3)


@given(histories, managers, pods)
def test_applying_again_changes_nothing(writes: list[tuple[str, Document]], manager: str, applied: Document) -> None:
    live = history(writes)
    before = copy.deepcopy((live, applied))
    first = stored(*apply(live, applied, at(manager, 10), force=True))
    assert (live, applied) == before
    assert stored(*apply(first, applied, at(manager, 20))) == first


@given(histories, managers, pods)
def test_the_manager_gets_what_it_applies(writes: list[tuple[str, Document]], manager: str, applied: Document) -> None:
    new, managed = apply(history(writes), applied, at(manager, 10), force=True)
    wanted = SHAPE.applied_fields(applied) or {}
    changes = compare.compare(SHAPE, applied, new)
    assert fields.intersection(changes.modified, wanted) == {}
    assert fields.intersection(changes.removed, wanted) == {}
    owned: FieldSet = next((entry["fieldsV1"] for entry in managed if entry["manager"] == manager), {})
    assert fields.difference(owned, wanted) == {}


@given(histories, managers, pods)
def test_without_force_others_keep_what_they_have(
    writes: list[tuple[str, Document]], manager: str, applied: Document
) -> None:
    live = history(writes)
    assert live is not None
    others = [entry for entry in live["metadata"]["managedFields"] if entry["manager"] != manager]
    try:
        _, managed = apply(live, applied, at(manager, 10))
    except ConflictsError:
        return
    assert [entry for entry in managed if entry["manager"] != manager] == others


@given(histories)
def test_what_everybody_gives_up_is_gone(writes: list[tuple[str, Document]]) -> None:
    live = history(writes)
    for second, manager in enumerate(("m1", "m2"), start=10):
        empty = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
        live = stored(*apply(live, empty, at(manager, second)))
    assert live is not None
    assert live["metadata"]["managedFields"] == []
    left = SHAPE.applied_fields({name: part for name, part in live.items() if name == "spec"}) or {}
    assert left in ({}, {"f:spec": {}})


def is_part(part: FieldSet, whole: FieldSet) -> bool:
    return fields.difference(part, whole) == {}


@given(pods)
def test_what_a_create_comes_to_own_is_what_its_entry_says(new: dict[str, Any]) -> None:
    told = track_update(None, new, at("m0"))
    assert first_fields(new, at("m0").definition) == (told[0]["fieldsV1"] if told else {})


@given(pods, st.lists(st.tuples(managers, pods), max_size=3))
def test_updates_own_what_is_there(first: Document, updates: list[tuple[str, Document]]) -> None:
    live = stored(first, track_update(None, first, at("m0")))
    for second, (manager, new) in enumerate(updates, start=1):
        managed = track_update(live, new, at(manager, second))
        live = stored(new, managed) if managed else new
        present = SHAPE.all_fields(live)
        owners = [entry["fieldsV1"] for entry in managed]
        assert all(is_part(owned, present) for owned in owners)
        for position, owned in enumerate(owners):
            assert all(fields.intersection(owned, other) == {} for other in owners[position + 1 :])


@given(pods, pods)
def test_changes_and_their_reverse(old: Document, new: Document) -> None:
    forth, back = compare.compare(SHAPE, old, new), compare.compare(SHAPE, new, old)
    assert (forth.added, forth.removed, forth.modified) == (back.removed, back.added, back.modified)
    assert (forth == ({}, {}, {})) == same(old, new)


def same(old: Document, new: Document) -> bool:
    """Whether two pods have the same values, whatever the order of elements that keys tell apart."""
    return bool(sorted_elements(old) == sorted_elements(new))


def sorted_elements(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: part if name == "tolerations" else sorted_elements(part) for name, part in value.items()}
    if isinstance(value, list):
        return sorted((sorted_elements(element) for element in value), key=repr)
    return value
