"""Objects as expressions see them: as their JSON would be, made only where an expression looks.

A typed object and a plain document of the same content look the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import msgspec

from dray.api.struct import encode_value
from dray.cel.values import MISSING, MapValue, StructValue, is_list

__all__ = ["json_of", "value_of"]

_PLAIN: Final = frozenset({str, int, float, bool, type(None)})
_OMITTED_WHEN_EMPTY: Final = (dict, list)
_ALWAYS: Final = object()
"""The default of a field that is always written."""


_TYPED: Final[set[type]] = set()
"""Types with fields that were seen; there is a fixed number of them."""


def value_of(value: Any) -> Any:
    """Anything that JSON can hold, or an API object, as a CEL value."""
    kind = value.__class__
    if kind in _PLAIN:
        return value
    if kind in _TYPED:
        return _Typed(value)
    if kind is tuple or kind is list:
        return [value_of(item) for item in value]
    if kind is dict:
        return _Document(value)
    if not isinstance(value, msgspec.Struct):
        return encode_value(value)
    document = getattr(value, "document", None)  # what a custom resource has instead of fields
    if document is not None:
        return _Document(document())
    _TYPED.add(kind)
    return _Typed(value)


def json_of(value: Any) -> Any:
    """A CEL value as plain JSON. Raises ValueError if it has none."""
    if value.__class__ in _PLAIN:
        return value
    if is_list(value):
        return [json_of(item) for item in value]
    if isinstance(value, MapValue):
        if any(key.__class__ is not str for key in value.keys()):  # noqa: SIM118 - a MapValue is no Python mapping
            raise ValueError("a map with keys that are no strings cannot be written")
        return {key: json_of(value.find(key)) for key in value.keys()}  # noqa: SIM118 - a MapValue is no Python mapping
    raise ValueError(f"a value of type {value.__class__.__name__} cannot be written")


def type_faults(value: Any, path: str) -> Iterator[str]:
    """Structs that stand where another struct belongs: `Object.metadata{}` as the `spec` of an `Object{}`."""
    if isinstance(value, StructValue):
        if value.type_name != path:
            why = "which matches field name path from root Object type"
            yield f'unexpected type name "{value.type_name}", expected "{path}", {why}'
        for name, part in value.entries.items():
            yield from type_faults(part, f"{path}.{name}")
    elif is_list(value):
        for part in value:
            yield from type_faults(part, path)
    elif isinstance(value, MapValue):
        for key in value.keys():  # noqa: SIM118 - a MapValue is no Python mapping
            yield from type_faults(value.find(key), path)


class _Made(MapValue):
    """Makes values of what it holds when they are asked for, once each."""

    __slots__ = ("_made",)

    _made: dict[str, Any] | None

    def _value(self, key: str, held: Any) -> Any:
        made = self._made
        if made is None:
            made = self._made = {}
        found = made.get(key)
        if found is None:
            found = made[key] = value_of(held)
        return found


class _Document(_Made):
    """A JSON object."""

    __slots__ = ("_entries",)

    def __init__(self, entries: dict[str, Any]) -> None:
        self._entries = entries
        self._made = None

    def find(self, key: Any) -> Any:
        if key.__class__ is not str:
            return MISSING
        value = self._entries.get(key, MISSING)
        if value.__class__ in _PLAIN or value is MISSING:
            return value
        return self._value(key, value)

    def keys(self) -> Iterator[Any]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"Document({self._entries!r})"


class _Typed(_Made):
    """A typed object, with the fields that its JSON has."""

    __slots__ = ("_fields", "_struct")

    def __init__(self, struct: msgspec.Struct) -> None:
        self._struct = struct
        self._fields = _fields_of(struct.__class__)
        self._made = None

    def find(self, key: Any) -> Any:
        field = self._fields.get(key) if key.__class__ is str else None
        if field is None:
            return MISSING
        name, default = field
        value = getattr(self._struct, name)
        if value is default or (default is _OMITTED_WHEN_EMPTY and not value):
            return MISSING
        if value.__class__ in _PLAIN:
            return value
        return self._value(name, value)

    def keys(self) -> Iterator[Any]:
        return (key for key in self._fields if self.find(key) is not MISSING)

    def __len__(self) -> int:
        return sum(1 for _ in self.keys())

    def __repr__(self) -> str:
        return f"Typed({self._struct!r})"


@cache
def _fields_of(kind: type[msgspec.Struct]) -> dict[str, tuple[str, Any]]:
    """By the name in JSON: the attribute, and the value that is not written."""
    found: dict[str, tuple[str, Any]] = {}
    for field in msgspec.structs.fields(kind):
        default: Any = _ALWAYS
        if field.default is not msgspec.NODEFAULT:
            default = field.default
        elif field.default_factory in _OMITTED_WHEN_EMPTY:
            default = _OMITTED_WHEN_EMPTY
        found[field.encode_name] = field.name, default
    return found
