"""Schemas as types of expressions, and values as expressions see them: converted only where somebody looks.

A schema becomes a `Shape`: its static type, the structs in it, and a function from JSON to values. Fields whose names
cannot be written in an expression are there under an escaped name: `a-b` is `a__dash__b`, `in` is `__in__`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, Final, TypeAlias

import msgspec

from dray.api.generated.apiextensions import JSONSchemaProps
from dray.cel import types
from dray.cel.library.times import parse_duration, parse_timestamp
from dray.cel.types import Kind, Type
from dray.cel.values import MISSING, CelError, MapValue

__all__ = ["Shape", "shape_of"]

Convert: TypeAlias = Callable[[Any], Any]
_Class: TypeAlias = type | None

_RESERVED: Final = frozenset(
    (
        "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import",
        "let", "loop", "package", "namespace", "return",
    )
)  # fmt: skip
_NAME: Final = re.compile(r"[a-zA-Z_./-][a-zA-Z0-9_./-]*")
_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}


def escaped(name: str) -> str | None:
    """The name by which expressions know a field; None if there is none."""
    if name in _RESERVED:
        return f"__{name}__"
    if _NAME.fullmatch(name) is None:
        return None
    return re.sub(r"__|[./-]", lambda found: _ESCAPES[found[0]], name)


@dataclass(frozen=True, slots=True)
class Shape:
    """What expressions know of values of a schema.

    Values of the class that is the `same` need no conversion. Of objects, `parts` are the fields, by the name that
    expressions know: their own names and what is known of them.
    """

    type: Type
    convert: Convert
    structs: dict[str, dict[str, Type]] = field(default_factory=dict)
    same: _Class = None
    parts: dict[str, tuple[str, Shape]] = field(default_factory=dict)
    is_list: bool = False


_Parts: TypeAlias = dict[str, tuple[str, Shape]]


def shape_of(schema: JSONSchemaProps, name: str, *, is_root: bool = False) -> Shape | None:
    """The shape of values of a schema; None if expressions cannot see them. `name` tells its structs apart."""
    if schema.x_kubernetes_int_or_string:
        return Shape(types.DYN, _plain)
    match schema.type:
        case "object":
            if isinstance(schema.additional_properties, JSONSchemaProps):
                return _map(schema.additional_properties, name)
            if schema.additional_properties is True and not schema.properties:
                return Shape(types.map_of(types.STRING, types.DYN), _free)
            return _object(schema, name, is_resource=is_root or schema.x_kubernetes_embedded_resource)
        case "array":
            return _list(schema, name)
        case "string":
            return _TEXTS.get(schema.format, _TEXT)
        case "integer":
            return Shape(types.INT, _whole, same=int)
        case "number":
            return Shape(types.DOUBLE, _double, same=float)
        case "boolean":
            return Shape(types.BOOL, _plain, same=bool)
    return None


def _plain(value: Any) -> Any:
    return _free(value) if value.__class__ in (dict, list) else value


def _whole(value: Any) -> Any:
    return int(value) if value.__class__ is float and value.is_integer() else value


def _double(value: Any) -> Any:
    return float(value) if value.__class__ is int else value


def _free(value: Any) -> Any:
    """A value that no schema describes."""
    if value.__class__ is dict:
        return _Map(value, _free)
    return [_free(item) for item in value] if value.__class__ is list else value


def _time(value: Any) -> Any:
    text = f"{value}T00:00:00Z" if isinstance(value, str) and len(value) == 10 else value
    found = parse_timestamp(text) if isinstance(text, str) else None
    return found if found is not None else CelError(f"invalid date-time: {value}")


def _duration(value: Any) -> Any:
    found = parse_duration(value) if isinstance(value, str) else None
    return found if found is not None else CelError(f"invalid duration: {value}")


def _bytes(value: Any) -> Any:
    try:
        return base64.b64decode(value, validate=True)
    except (TypeError, binascii.Error):
        return CelError("invalid base64")


_TEXTS: Final = {
    "byte": Shape(types.BYTES, _bytes),
    "date": Shape(types.TIMESTAMP, _time),
    "date-time": Shape(types.TIMESTAMP, _time),
    "duration": Shape(types.DURATION, _duration),
}
_TEXT: Final = Shape(types.STRING, _plain, same=str)


_OBJECTS: Final = {dict}


class _Object(MapValue, msgspec.Struct, gc=False, eq=False):
    """An object with declared fields; others do not exist for expressions.

    A struct, because those of a list are many, and are made without a line of Python.
    """

    _fields: _Parts
    _entries: dict[str, Any]
    _made: dict[str, Any] | None = None

    def find(self, key: Any) -> Any:
        if key.__class__ is not str:
            return MISSING
        declared = self._fields.get(key) or (self._fields.get(f"__{key}__") if key in _RESERVED else None)
        if declared is None:
            return MISSING
        name, shape = declared
        value = self._entries.get(name, MISSING)
        if value is MISSING or value is None or value.__class__ is shape.same:
            return value
        if self._made is None:
            self._made = {}
        made = self._made.get(key, MISSING)
        if made is MISSING:
            made = self._made[key] = shape.convert(value)
        return made

    def keys(self) -> Iterator[Any]:
        return (key for key, (name, _) in self._fields.items() if name in self._entries)

    def __len__(self) -> int:
        return sum(1 for _ in self.keys())


class _Map(MapValue):
    """A map whose values are all alike."""

    __slots__ = ("_convert", "_entries")

    def __init__(self, entries: dict[str, Any], convert: Convert) -> None:
        self._entries = entries
        self._convert = convert

    def find(self, key: Any) -> Any:
        value = self._entries.get(key, MISSING) if key.__class__ is str else MISSING
        return value if value is MISSING or value is None else self._convert(value)

    def keys(self) -> Iterator[Any]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


_METADATA_FIELDS: Final = {"name": types.STRING, "generateName": types.STRING}


def _object(schema: JSONSchemaProps, name: str, *, is_resource: bool) -> Shape:
    structs: dict[str, dict[str, Type]] = {}
    fields: _Parts = {}
    declared: dict[str, Type] = {}

    def add(field_name: str, shape: Shape | None) -> None:
        known = escaped(field_name)
        if shape is not None and known is not None:
            fields[known] = (field_name, shape)
            declared[known] = shape.type
            if field_name in _RESERVED:  # which are known by their own names, too
                declared.setdefault(field_name, shape.type)
            structs.update(shape.structs)

    for field_name, part in schema.properties.items():
        if not (is_resource and field_name == "metadata"):
            add(field_name, shape_of(part, f"{name}.{field_name}"))
    if is_resource:
        add("apiVersion", _TEXT)
        add("kind", _TEXT)
        add("metadata", _metadata(f"{name}.metadata"))
    structs[name] = declared
    return Shape(Type(Kind.STRUCT, name), _converter(fields), structs, parts=fields)


def _metadata(name: str) -> Shape:
    fields: _Parts = {key: (key, _TEXT) for key in _METADATA_FIELDS}
    return Shape(Type(Kind.STRUCT, name), _converter(fields), {name: dict(_METADATA_FIELDS)}, parts=fields)


def _converter(fields: _Parts) -> Convert:
    def convert(value: Any) -> Any:
        return _Object(fields, value) if value.__class__ is dict else value

    return convert


def _map(values: JSONSchemaProps, name: str) -> Shape | None:
    inner = shape_of(values, f"{name}.@values")
    if inner is None:
        return None

    def convert(value: Any) -> Any:
        return _Map(value, inner.convert) if value.__class__ is dict else value

    return Shape(types.map_of(types.STRING, inner.type), convert, inner.structs)


def _list(schema: JSONSchemaProps, name: str) -> Shape | None:
    inner = shape_of(schema.items, f"{name}.@items") if isinstance(schema.items, JSONSchemaProps) else None
    if inner is None:
        return None
    one, same, fields = inner.convert, {inner.same}, inner.parts

    def convert(value: Any) -> Any:
        if value.__class__ is not list:
            return value
        kinds = {*map(type, value)}
        if kinds == same:
            return value
        if fields and kinds == _OBJECTS:
            return [*map(_Object, repeat(fields), value)]
        return [None if item is None else one(item) for item in value]

    return Shape(types.list_of(inner.type), convert, inner.structs, is_list=True)
