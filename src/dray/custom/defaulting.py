"""Defaults of a schema, put in place where a value is missing, or null where null is not allowed.

A schema becomes one function, once; parts without defaults below them have none and cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, TypeAlias

from dray.api.generated.apiextensions import JSONSchemaProps

Default: TypeAlias = Callable[[Any], None]
"""Changes a value that is the caller's own."""

_SCALARS = (str, int, float, bool)


def compile_defaults(schema: JSONSchemaProps) -> Default | None:
    """The function for values of a schema; None if it has no defaults."""
    if isinstance(schema.items, JSONSchemaProps):
        return _of_list(schema.items)
    own = [(name, _maker(found.default), found.nullable) for name, found in schema.properties.items() if _has(found)]
    parts = {name: inner for name, found in schema.properties.items() if (inner := compile_defaults(found)) is not None}
    values = None
    if isinstance(schema.additional_properties, JSONSchemaProps):
        values = _of_element(schema.additional_properties)
    if not own and not parts and values is None:
        return None
    declared = frozenset(schema.properties)

    def default(value: Any) -> None:
        if value.__class__ is not dict:
            return
        for name, make, is_nullable in own:
            if name not in value or (value[name] is None and not is_nullable):
                value[name] = make()
        for name, inner in parts.items():
            if name in value:
                inner(value[name])
        if values is not None:
            for name in value:
                if name not in declared:
                    value[name] = values(value[name])

    return default


def drop_nulls(value: Any, schema: JSONSchemaProps | None) -> None:
    """Removes nulls where null is neither allowed nor replaced by a default. Few documents have any null at all."""
    if value.__class__ is list:
        items = schema.items if schema is not None and isinstance(schema.items, JSONSchemaProps) else None
        for element in value:
            drop_nulls(element, items)
    elif value.__class__ is dict:
        for name in list(value):
            inner = _property(schema, name)
            if value[name] is None and inner is not None and not inner.nullable and not _has(inner):
                del value[name]
            else:
                drop_nulls(value[name], inner)


def _property(schema: JSONSchemaProps | None, name: str) -> JSONSchemaProps | None:
    if schema is None:
        return None
    others = schema.additional_properties
    return schema.properties.get(name) or (others if isinstance(others, JSONSchemaProps) else None)


def _has(schema: JSONSchemaProps) -> bool:
    return schema.default is not None


def _maker(value: Any) -> Callable[[], Any]:
    return (lambda: value) if isinstance(value, _SCALARS) else (lambda: deepcopy(value))


def _of_element(schema: JSONSchemaProps) -> Callable[[Any], Any] | None:
    """What a map or list makes of its elements: a null that may not be one becomes the default."""
    inner = compile_defaults(schema)
    if inner is None and not _has(schema):
        return None
    make = _maker(schema.default)
    replaces_null = _has(schema) and not schema.nullable

    def default(value: Any) -> Any:
        if value is None and replaces_null:
            value = make()
        if inner is not None:
            inner(value)
        return value

    return default


def _of_list(items: JSONSchemaProps) -> Default | None:
    element = _of_element(items)
    if element is None:
        return None

    def default(value: Any) -> None:
        if value.__class__ is list:
            value[:] = [element(item) for item in value]

    return default
