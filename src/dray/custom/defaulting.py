"""Defaults of a schema, put in place where a value is missing, or null where null is not allowed.

A schema becomes one function, once; parts without defaults below them have none and cost nothing. A list of a hundred
thousand empty objects may get as many copies of a large default: what is added to one object is bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from dray.api.generated.apiextensions import JSONSchemaProps
from dray.custom.paths import property_schema

Default: TypeAlias = Callable[[Any], None]
"""Changes a value that is the caller's own. Raises DefaultsTooLarge."""

MOST_BYTES: Final = 3 * 1024 * 1024
"""Of JSON that defaults add to one object: as much as the largest body has."""

_SCALARS = (str, int, float, bool)


class DefaultsTooLarge(ValueError):
    """An object would become too large with its defaults."""

    def __init__(self) -> None:
        super().__init__(f"the defaults of its definition would add more than {MOST_BYTES} bytes to the object")


class _Room:
    """How many bytes may still be added."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MOST_BYTES

    def take(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise DefaultsTooLarge


_Fill: TypeAlias = Callable[[Any, _Room], None]
_Make: TypeAlias = Callable[[_Room], Any]


def compile_defaults(schema: JSONSchemaProps) -> Default | None:
    """The function for values of a schema; None if it has no defaults."""
    fill = _compile(schema)
    return None if fill is None else lambda value: fill(value, _Room())


def _compile(schema: JSONSchemaProps) -> _Fill | None:
    if isinstance(schema.items, JSONSchemaProps):
        return _of_list(schema.items)
    own = [
        (name, _maker(name, found.default), found.nullable) for name, found in schema.properties.items() if _has(found)
    ]
    parts = {name: inner for name, found in schema.properties.items() if (inner := _compile(found)) is not None}
    values = None
    if isinstance(schema.additional_properties, JSONSchemaProps):
        values = _of_element(schema.additional_properties)
    if not own and not parts and values is None:
        return None
    declared = frozenset(schema.properties)

    def fill(value: Any, room: _Room) -> None:
        if value.__class__ is not dict:
            return
        for name, make, is_nullable in own:
            if name not in value or (value[name] is None and not is_nullable):
                value[name] = make(room)
        for name, inner in parts.items():
            if name in value:
                inner(value[name], room)
        if values is not None:
            for name in value:
                if name not in declared:
                    value[name] = values(value[name], room)

    return fill


class Growth(NamedTuple):
    """How much defaults add at most: so many bytes `once`, and so many for `each` element of a list or map."""

    once: int = 0
    each: int = 0

    def added_to(self, size: int) -> int:
        """Bytes that an object of some size in JSON may get; an element takes at least two."""
        return self.once + size // 2 * self.each


def growth_of(schema: JSONSchemaProps) -> Growth:
    """What the defaults of a schema may do to a value."""
    once, each = 0, 0
    for name, found in schema.properties.items():
        inner = growth_of(found)
        once += inner.once + _made(name, found, inner)
        each = max(each, inner.each)
    for element in (schema.items, schema.additional_properties):
        if isinstance(element, JSONSchemaProps):
            inner = growth_of(element)
            each = max(each, inner.once + inner.each + _made("", element, inner))
    return Growth(once, each)


def _made(name: str, schema: JSONSchemaProps, inner: Growth) -> int:
    """The bytes of a default, and of those that its own elements get."""
    if not _has(schema):
        return 0
    size = len(msgspec.json.encode(schema.default))
    return len(name) + len('"":,') + size + size // 2 * inner.each


def drop_nulls(value: Any, schema: JSONSchemaProps | None) -> None:
    """Removes nulls where null is neither allowed nor replaced by a default. Few documents have any null at all."""
    if value.__class__ is list:
        items = schema.items if schema is not None and isinstance(schema.items, JSONSchemaProps) else None
        for element in value:
            drop_nulls(element, items)
    elif value.__class__ is dict:
        for name in list(value):
            inner = property_schema(schema, name)
            if value[name] is None and inner is not None and not inner.nullable and not _has(inner):
                del value[name]
            else:
                drop_nulls(value[name], inner)


def _has(schema: JSONSchemaProps) -> bool:
    return schema.default is not None


def _maker(name: str, value: Any) -> _Make:
    size = len(name) + len(msgspec.json.encode(value))
    is_scalar = isinstance(value, _SCALARS)

    def make(room: _Room) -> Any:
        room.take(size)
        return value if is_scalar else deepcopy(value)

    return make


def _of_element(schema: JSONSchemaProps) -> Callable[[Any, _Room], Any] | None:
    """What a map or list makes of its elements: a null that may not be one becomes the default."""
    inner = _compile(schema)
    if inner is None and not _has(schema):
        return None
    make = _maker("", schema.default)
    replaces_null = _has(schema) and not schema.nullable

    def filled(value: Any, room: _Room) -> Any:
        if value is None and replaces_null:
            value = make(room)
        if inner is not None:
            inner(value, room)
        return value

    return filled


def _of_list(items: JSONSchemaProps) -> _Fill | None:
    element = _of_element(items)
    if element is None:
        return None

    def fill(value: Any, room: _Room) -> None:
        if value.__class__ is list:
            value[:] = [element(item, room) for item in value]

    return fill
