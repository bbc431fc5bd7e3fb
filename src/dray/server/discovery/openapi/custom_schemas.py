"""The schemas of custom resources, as their definitions have them, in the dialect of OpenAPI 3 or 2."""

from __future__ import annotations

from typing import Any

from dray.api import codec
from dray.api.registry import Kind
from dray.api.schema.facts import META_PACKAGE
from dray.custom.kinds import CustomKind
from dray.server.discovery.openapi.schemas import Dialect, Schema

USED = (f"{META_PACKAGE}.ObjectMeta", f"{META_PACKAGE}.ListMeta")
"""The definitions that those of custom resources refer to."""

_ALTERNATIVES = ("allOf", "anyOf", "oneOf", "not")


def name_of(kind: Kind, version: str, suffix: str = "") -> str:
    """The name of the definition of a kind: `com.example.stable.v1.CronTab`."""
    return f"{'.'.join(reversed(kind.group.split('.')))}.{version}.{kind.kind}{suffix}"


def schemas_of(kind: CustomKind, dialect: Dialect) -> dict[str, Schema]:
    """The schemas of a kind and of a list of it, by name."""
    version, name = kind.versions[0], name_of(kind, kind.versions[0])
    gvk = {"group": kind.group, "version": version, "kind": kind.kind}
    items = {
        "description": f"The {kind.plural} of the list.",
        "type": "array",
        "items": dialect.reference(name),
    }
    return {
        name: _whole(kind, dialect) | {"x-kubernetes-group-version-kind": [gvk]},
        f"{name}List": {
            "description": f"A list of {kind.kind}.",
            "type": "object",
            "required": ["items"],
            "properties": {**_names(), "items": items, "metadata": _reference(dialect, "ListMeta", "About the list.")},
            "x-kubernetes-group-version-kind": [{**gvk, "kind": kind.list_kind}],
        },
    }


def _names() -> Schema:
    return {
        "apiVersion": {
            "description": "APIVersion defines the group and version of the object.",
            "type": "string",
        },
        "kind": {"description": "Kind says what the object is.", "type": "string"},
    }


def _reference(dialect: Dialect, name: str, description: str) -> Schema:
    found = dialect.reference(f"{META_PACKAGE}.{name}")
    return {"description": description, **({"allOf": [found]} if dialect.wrap_references else found)}


def _whole(kind: CustomKind, dialect: Dialect) -> Schema:
    made: Schema = codec.to_builtins(kind.version.schema)
    if not dialect.null:
        made = _in_version_2(made)
    if not dialect.null and made.pop("x-kubernetes-preserve-unknown-fields", False):
        return {**made, "type": "object"}
    given = made.get("properties", {})
    meta = _reference(dialect, "ObjectMeta", "Standard object's metadata: the name, labels, owners and the like.")
    return {"type": "object", **made, "properties": {**given, **_names(), "metadata": meta}}


def _in_version_2(made: Schema) -> Schema:
    """Without what clients of version 2 do not know, or stumble over."""
    found: Schema = {name: value for name, value in made.items() if name not in _ALTERNATIVES}
    is_free = bool(found.get("x-kubernetes-preserve-unknown-fields"))
    if found.pop("nullable", False):
        found.pop("type", None)
        found.pop("items", None)
        found.pop("properties", None)
    if is_free:
        found.pop("items", None)
        found.pop("properties", None)
        if found.get("type") == "object":
            del found["type"]
    if found.get("type") == "array" and "items" not in found:
        del found["type"]
    return _parts_in_version_2(found)


def _parts_in_version_2(found: Schema) -> Schema:
    properties: dict[str, Any] = found.get("properties", {})
    may_be_null = {name for name, part in properties.items() if part.get("nullable")}
    required = [name for name in found.get("required", ()) if name not in may_be_null]
    if "required" in found:
        found = {**found, "required": required} if required else {k: v for k, v in found.items() if k != "required"}
    if properties:
        found = {**found, "properties": {name: _in_version_2(part) for name, part in properties.items()}}
    for name in ("items", "additionalProperties"):
        if isinstance(found.get(name), dict):
            found = {**found, name: _in_version_2(found[name])}
    return found
