"""Every field of a kind that acts is known to act, is for the node, or is said to do nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import dray
from acting_fields import ACTING
from dray.api import idle_fields as table
from dray.api.effects import Effect, effect_of
from dray.api.idle_fields import EACH, IDLE_FIELDS, LISTED_ONLY, OF_THE_NODE, idle_fields, structs_in
from dray.api.kinds import PODS
from dray.api.meta import Object, ObjectMeta
from dray.api.registry import Kind, by_resource, kinds

ENVELOPE = {"apiVersion", "kind", "metadata", "status"}
ACTIVE = [kind for kind in kinds() if effect_of(kind).effect is Effect.ACTS]


def fields_below(struct: type, path: str, idle: dict[str, str], seen: set[type]) -> Iterator[tuple[type, str]]:
    """The fields that nobody has said to do nothing, with the types that have them."""
    for field in msgspec.structs.fields(struct):
        place = f"{path}{field.encode_name}"
        is_idle = place in idle or field.encode_name in OF_THE_NODE.get(struct.__name__, ())
        if is_idle or (issubclass(struct, Object) and field.encode_name in ENVELOPE):
            continue
        yield struct, field.encode_name
        each = EACH if "tuple" in str(field.type) else ""
        for inner in structs_in(field.type):
            if inner is not ObjectMeta and inner not in seen:
                yield from fields_below(inner, f"{place}{each}.", idle, seen | {inner})


@pytest.mark.parametrize("kind", ACTIVE, ids=lambda kind: kind.resource)
def test_every_field_acts_or_is_said_not_to(kind: Kind) -> None:
    idle = IDLE_FIELDS.get(kind.resource, {})
    unknown = {
        f"{struct.__name__}.{name}"
        for struct, name in fields_below(kind.hub, "", idle, {kind.hub})
        if name not in ACTING.get(struct.__name__, ())
    }
    hint = "write them into tests/fixtures/acting_fields.txt, or into dray.api.idle_fields with why they do nothing"
    assert not unknown, hint


READ_BY_PEOPLE = {
    "Event": "deprecatedCount deprecatedFirstTimestamp deprecatedLastTimestamp deprecatedSource regarding related "
    "reportingController reportingInstance",
    "LeaseSpec": "acquireTime",
    "NodeSpec": "providerID",
    "WorkloadReference": "templateName",
}
"""Shown, and nothing else was meant to happen."""
ONLY_JUDGED = {
    "JobSpec": "manualSelector",
    "PodGroupSchedulingPolicy": "basic",
    "PodGroupSpec": "parentCompositePodGroupName",
    "ScopedResourceSelectorRequirement": "scopeName",
}
"""Refused, or made into another field or into what a quota counts, by validation alone."""


def test_what_is_said_to_act_is_read_by_somebody() -> None:
    """By name: a field of the same name may stand for another one, but what nobody reads cannot act."""
    read = set[str]()
    for path in Path(dray.__file__).parent.rglob("*.py"):
        if not {"validation", "generated"} & set(path.parts):
            read.update(re.findall(r"\.([a-z_0-9]+)", path.read_text()))
    known = {
        f"{name}.{field}"
        for table in (READ_BY_PEOPLE, ONLY_JUDGED)
        for name, fields in table.items()
        for field in fields.split()
    }
    silent = {
        f"{struct.__name__}.{field.encode_name}"
        for kind in ACTIVE
        for struct in structs_below(kind.hub, set())
        for field in msgspec.structs.fields(struct)
        if field.encode_name in ACTING.get(struct.__name__, ()) and field.name not in read
    }
    assert silent <= known | {f"JSONSchemaProps.{name}" for name in BY_NAME}
    assert known <= silent


BY_NAME = ("additionalItems", "dependencies", "example", "externalDocs", "patternProperties", "definitions", "id")
"""Fields of schemas that are gone through by their names."""


def structs_below(struct: type, seen: set[type]) -> set[type]:
    """A type and those that stand in it."""
    if struct in seen or struct is ObjectMeta:
        return seen
    seen.add(struct)
    for field in msgspec.structs.fields(struct):
        for inner in structs_in(field.type):
            structs_below(inner, seen)
    return seen


@pytest.mark.parametrize(("resource", "path"), [(name, path) for name, table in IDLE_FIELDS.items() for path in table])
def test_who_sets_a_field_that_does_nothing_is_told(resource: str, path: str) -> None:
    plural, _, group = resource.partition(".")
    kind = by_resource(group, plural)
    assert kind is not None
    said = f"{path} is stored and does nothing here: {IDLE_FIELDS[resource][path]}"
    told = [] if resource in LISTED_ONLY else [said]
    assert idle_fields(kind, with_nothing_but(path.split("."), "set")) == told
    assert idle_fields(kind, with_nothing_but(path.split("."), "")) == []


def with_nothing_but(path: list[str], value: str) -> Any:
    """Looks like an object in which that field alone is set."""
    if not path:
        return value
    inner = with_nothing_but(path[1:], value)
    return only(snake(path[0].removesuffix(EACH)), (inner,) if path[0].endswith(EACH) else inner)


def only(name: str, value: object) -> Any:
    """Has one attribute that is something; all others are nothing."""
    return msgspec.defstruct("Only", [name], namespace={"__getattr__": lambda _self, _name: None})(value)


def snake(name: str) -> str:
    return re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()


def test_the_fields_of_a_type_are_found_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes a millisecond and more for a large one, and the first pod waits for all of them."""
    asked: list[type] = []
    find = msgspec.structs.fields

    def count(struct: type) -> object:
        asked.append(struct)
        return find(struct)

    monkeypatch.setattr(msgspec.structs, "fields", count)
    table._rows.cache_clear()
    table._fields.cache_clear()
    table.learn(PODS)
    assert asked
    assert len(asked) == len(set(asked))
    table.learn(PODS)
    assert len(asked) == len(set(asked))
