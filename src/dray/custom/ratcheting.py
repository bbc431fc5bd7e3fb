"""Old sins: what an update leaves as it was is not held against it, even if the schema has become stricter.

A problem counts only if no value on the way to it, nor the value itself, is the same as in the stored object. Fields
correspond by name, elements of lists that are maps by their keys; elements of other lists do not correspond.
"""

from __future__ import annotations

from typing import Any

from dray.api.generated.apiextensions import JSONSchemaProps
from dray.custom.paths import property_schema
from dray.custom.problems import Problem, Steps

NOTHING: Any = object()
"""Stands for a value that was not there, or does not correspond to another."""


def new_problems(schema: JSONSchemaProps, problems: list[Problem], new: Any, old: Any) -> list[Problem]:
    """The problems that the update itself brings."""
    return [one for one in problems if one.is_transition or not _is_old(schema, one.steps, new, old)]


def _is_old(schema: JSONSchemaProps | None, steps: Steps, new: Any, old: Any) -> bool:
    if old is NOTHING:
        return False
    if _same(new, old):
        return True
    for step in steps:
        schema, new, old = _follow(schema, step, new, old)
        if old is NOTHING:
            return False
        if _same(new, old):
            return True
    return False


def _same(new: Any, old: Any) -> bool:
    return new.__class__ is old.__class__ and bool(new == old)


def _follow(
    schema: JSONSchemaProps | None, step: str | int, new: Any, old: Any
) -> tuple[JSONSchemaProps | None, Any, Any]:
    if isinstance(step, str):
        inner = property_schema(schema, step)
        return inner, _entry(new, step), _entry(old, step)
    items = schema.items if schema is not None and isinstance(schema.items, JSONSchemaProps) else None
    element = new[step] if isinstance(new, list) and step < len(new) else NOTHING
    return items, element, corresponding(schema, element, old)


def corresponding(schema: JSONSchemaProps | None, element: Any, old: Any) -> Any:
    """The element of the old list that an element of the new one is meant to be; NOTHING if there is none."""
    if schema is None or schema.x_kubernetes_list_type != "map" or not isinstance(old, list):
        return NOTHING
    if not isinstance(element, dict):
        return NOTHING
    keys = schema.x_kubernetes_list_map_keys
    wanted = [element.get(key) for key in keys]
    for one in old:
        if isinstance(one, dict) and [one.get(key) for key in keys] == wanted:
            return one
    return NOTHING


def _entry(value: Any, name: str) -> Any:
    return value.get(name, NOTHING) if isinstance(value, dict) else NOTHING
