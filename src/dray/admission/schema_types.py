"""What the schema of a built-in kind says of its objects, as types of expressions."""

from __future__ import annotations

from typing import Final, NamedTuple

from dray.api import schema
from dray.api.text_memory import remember_texts
from dray.cel.types import BOOL, BYTES, DOUBLE, DYN, INT, STRING, TIMESTAMP, Kind, Type, list_of, map_of

__all__ = ["TypedKind", "typed_kind"]

_TEXTS: Final = {"byte": BYTES, "date-time": TIMESTAMP}


class TypedKind(NamedTuple):
    """A kind whose objects have a type: its name (`apps/v1, Kind=Deployment`), and the structs that the type is of."""

    name: str
    type: Type
    structs: dict[str, dict[str, Type]]


@remember_texts(64)
def typed_kind(group: str, version: str, kind: str) -> TypedKind | None:
    """A built-in kind in one version; None if there is no such kind."""
    try:
        definition = schema.for_kind(group, version, kind)
    except schema.UnknownDefinitionError:
        return None
    structs: dict[str, dict[str, Type]] = {}
    found = _of_definition(definition.name, structs)
    return TypedKind(f"{f'{group}/{version}' if group else version}, Kind={kind}", found, structs)


def _of_definition(name: str, structs: dict[str, dict[str, Type]]) -> Type:
    """The type of a definition; its fields, and all that they are of, are put into `structs`."""
    made = Type(Kind.STRUCT, name)
    if name in structs:
        return made
    definition = schema.definition(name)
    if not definition.properties:
        if definition.one_of or definition.type in ("", "object"):
            return DYN
        return _of_scalar(definition.type, definition.format)
    fields = structs[name] = {}
    for field, found in definition.properties.items():
        fields[field] = _of_property(found, structs)
    return made


def _of_property(found: schema.Property, structs: dict[str, dict[str, Type]]) -> Type:
    if found.ref:
        return _of_definition(found.ref, structs)
    if found.type == "array":
        return list_of(DYN if found.items is None else _of_property(found.items, structs))
    if found.type == "object":
        return DYN if found.values is None else map_of(STRING, _of_property(found.values, structs))
    return _of_scalar(found.type, found.format)


def _of_scalar(kind: str, format: str) -> Type:
    match kind:
        case "string":
            return DYN if format == "int-or-string" else _TEXTS.get(format, STRING)
        case "integer":
            return INT
        case "number":
            return DOUBLE
        case "boolean":
            return BOOL
    return DYN
