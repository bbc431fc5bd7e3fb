"""Lists that are sets or maps: no element, or no key, may stand there twice."""

from __future__ import annotations

from typing import Any

import msgspec

from dray.api.field import FieldError, duplicate, invalid
from dray.api.generated.apiextensions import JSONSchemaProps
from dray.custom.problems import Check, Problem, below


def compile_list_types(schema: JSONSchemaProps) -> Check | None:
    """The function that looks for duplicates in values of a schema; None if there can be none."""
    if isinstance(schema.items, JSONSchemaProps):
        return _in_list(schema, compile_list_types(schema.items))
    parts = {name: made for name, found in schema.properties.items() if (made := compile_list_types(found)) is not None}
    others = schema.additional_properties
    values = compile_list_types(others) if isinstance(others, JSONSchemaProps) else None
    if not parts and values is None:
        return None
    declared = frozenset(schema.properties)

    def check(value: Any) -> list[Problem] | None:
        if value.__class__ is not dict:
            return None
        found: list[Problem] = []
        for name, part in value.items():
            judge = parts.get(name) if name in declared else values
            problems = judge(part) if judge is not None else None
            if problems is not None:
                found += below(name, problems)
        return found or None

    return check


def _in_list(schema: JSONSchemaProps, item: Check | None) -> Check | None:
    kind, keys = schema.x_kubernetes_list_type, schema.x_kubernetes_list_map_keys
    is_map = kind == "map"
    if kind not in ("set", "map") and item is None:
        return None

    def check(value: Any) -> list[Problem] | None:
        if value.__class__ is not list:
            return None
        found: list[Problem] = []
        if is_map:
            strange = next((at for at, one in enumerate(value) if one is not None and one.__class__ is not dict), -1)
            if strange >= 0:
                return [Problem((strange,), lambda path: _no_object(path, value[strange]))]
        if kind in ("set", "map") and len(value) > 1:
            found += _duplicates([_key(element, keys) for element in value] if is_map else value)
        if item is not None:
            for index, element in enumerate(value):
                problems = item(element)
                if problems is not None:
                    found += below(index, problems)
        return found or None

    return check


def _no_object(path: str, value: Any) -> FieldError:
    return invalid(path, value, "must be an object for an array of list-type map")


def _key(element: Any, keys: tuple[str, ...]) -> dict[str, Any]:
    return {} if element is None else {key: element[key] for key in keys if key in element}


def _duplicates(values: list[Any]) -> list[Problem]:
    """One problem per value that stands there again, at its second place."""
    seen: dict[bytes, int] = {}
    found = []
    for index, value in enumerate(values):
        text = msgspec.json.encode(value, order="sorted")
        seen[text] = times = seen.get(text, 0) + 1
        if times == 2:
            found.append(_twice(index, value))
    return found


def _twice(index: int, value: Any) -> Problem:
    return Problem((index,), lambda path: duplicate(path, value))
