"""The simple paths of definitions: `.spec.replicas`, as subresources and selectable fields name what they mean."""

from __future__ import annotations

import re
from typing import Any, Final

from dray.api.generated.apiextensions import JSONSchemaProps

MISSING: Any = object()
_STEP: Final = re.compile(r"\.(?P<name>[^.\[\]]+)|\['(?P<key>(?:[^'\\]|\\.)*)'\]")
_ESCAPED: Final = re.compile(r"\\(.)")


def steps_of(path: str) -> tuple[str, ...]:
    """`.spec.replicas` → ("spec", "replicas")."""
    return tuple(path.removeprefix(".").split("."))


def property_schema(schema: JSONSchemaProps | None, name: str) -> JSONSchemaProps | None:
    """What is said of a property of an object; None if nothing is."""
    if schema is None:
        return None
    others = schema.additional_properties
    return schema.properties.get(name) or (others if isinstance(others, JSONSchemaProps) else None)


def schema_at(schema: JSONSchemaProps, path: str) -> JSONSchemaProps | None:
    """The part of a schema that a path of a rule leads to (`.spec.list`, `.map['key']`); None if it leads nowhere."""
    found: JSONSchemaProps | None = schema
    end = 0
    for step in _STEP.finditer(path):
        if step.start() != end or found is None:
            return None
        end = step.end()
        name = step["name"] if step["name"] is not None else _ESCAPED.sub(r"\1", step["key"])
        found = property_schema(found, name)
    return found if end == len(path) else None


def look_up(document: dict[str, Any], steps: tuple[str, ...]) -> Any:
    """The value that steps lead to, MISSING if there is none."""
    value: Any = document
    for step in steps:
        if value.__class__ is not dict or step not in value:
            return MISSING
        value = value[step]
    return value


def put(document: dict[str, Any], steps: tuple[str, ...], value: Any) -> dict[str, Any]:
    """The document with another value at the end of steps; what is not on the way is shared."""
    first, *rest = steps
    inner = document.get(first)
    below = put(inner if isinstance(inner, dict) else {}, tuple(rest), value) if rest else value
    return {**document, first: below}
