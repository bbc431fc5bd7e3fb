"""Facts about types as JSON schemas, in the dialect of OpenAPI 3 or 2."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from dray.api import schema
from dray.api.schema import Definition, Property
from dray.server.discovery.openapi import descriptions

Schema = dict[str, Any]

TIME = "date-time"


class Dialect(msgspec.Struct, frozen=True):
    """Where definitions live, and how a reference with more said about it is written."""

    prefix: str
    wrap_references: bool
    """Version 3 ignores what stands next to a `$ref`, so the reference goes into an `allOf`."""
    unions_of_types: bool
    """Version 3 has `oneOf`; version 2 tells only one of the types."""
    null: bool
    """Version 3 can say that a value may be null."""

    def reference(self, name: str) -> Schema:
        """A reference to a definition."""
        return {"$ref": self.prefix + name}


V3 = Dialect("#/components/schemas/", wrap_references=True, unions_of_types=True, null=True)
V2 = Dialect("#/definitions/", wrap_references=False, unions_of_types=False, null=False)


def closure(names: Iterable[str]) -> dict[str, Definition]:
    """The definitions with these names and all that they use, by name."""
    found: dict[str, Definition] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = schema.definition(name)
            waiting.extend(ref for one in found[name].properties.values() for ref in _references(one))
    return dict(sorted(found.items()))


def _references(found: Property) -> list[str]:
    inner = [part for part in (found.items, found.values) if part is not None]
    return [found.ref] * bool(found.ref) + [ref for part in inner for ref in _references(part)]


def definition_schema(found: Definition, dialect: Dialect) -> Schema:
    """One type."""
    made: Schema = {"description": descriptions.of_definition(found)}
    if found.one_of and dialect.unions_of_types:
        made["oneOf"] = [{"type": one} for one in found.one_of]
    elif found.type:
        made["type"] = found.type
    if found.format:
        made["format"] = found.format
    if found.format == TIME and dialect.null:
        made["nullable"] = True  # a required time that is not set goes over the wire as null
    if found.required:
        made["required"] = list(found.required)
    if found.properties:
        made["properties"] = {name: _field(found, name, one, dialect) for name, one in found.properties.items()}
    if found.kinds:
        made["x-kubernetes-group-version-kind"] = [kind._asdict() for kind in found.kinds]
    if found.map_type:
        made["x-kubernetes-map-type"] = found.map_type
    if found.unions:
        made["x-kubernetes-unions"] = list(found.unions)
    return made


def _field(owner: Definition, name: str, found: Property, dialect: Dialect) -> Schema:
    return {"description": descriptions.of_field(owner, name, found), **property_schema(found, dialect)}


def property_schema(found: Property, dialect: Dialect) -> Schema:
    """A field, or the elements of a list or map."""
    made = _type(found, dialect)
    if found.default is not msgspec.UNSET:
        made["default"] = found.default
    if found.enum:
        made["enum"] = list(found.enum)
    made |= _extensions(found)
    if dialect.wrap_references and "$ref" in made and len(made) > 1:
        made["allOf"] = [{"$ref": made.pop("$ref")}]
    return made


def _type(found: Property, dialect: Dialect) -> Schema:
    if found.ref:
        return dialect.reference(found.ref)
    made: Schema = {"type": found.type} if found.type else {}
    if found.format:
        made["format"] = found.format
    if found.items is not None:
        made["items"] = property_schema(found.items, dialect)
    if found.values is not None:
        made["additionalProperties"] = property_schema(found.values, dialect)
    return made


def _extensions(found: Property) -> Schema:
    """How the field merges, for clients that make patches."""
    said: Schema = {}
    if found.map_keys:
        said["x-kubernetes-list-map-keys"] = list(found.map_keys)
    if found.list_type:
        said["x-kubernetes-list-type"] = found.list_type
    if found.map_type:
        said["x-kubernetes-map-type"] = found.map_type
    if found.merge_key:
        said["x-kubernetes-patch-merge-key"] = found.merge_key
    if found.patch_strategy:
        said["x-kubernetes-patch-strategy"] = ",".join(found.patch_strategy)
    return said
