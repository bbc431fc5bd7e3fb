"""Fields that a schema does not know are dropped, in place, and named.

A schema becomes one function per object or list in it, once; what cannot hold an unknown field has none. A function
gives the steps to the fields that it dropped, from where it stands, or None, so that a document with nothing wrong in
it costs no paths.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from dray.api.generated.apiextensions import JSONSchemaProps

Steps: TypeAlias = tuple[str | int, ...]
Prune: TypeAlias = Callable[[Any], list[Steps] | None]

META_FIELDS = frozenset(("apiVersion", "kind", "metadata"))


def compile_pruning(schema: JSONSchemaProps, *, is_root: bool = False) -> Prune | None:
    """The function for values of a schema; None if there is nothing to drop. The root keeps its metadata."""
    if schema.type == "array" and not schema.x_kubernetes_preserve_unknown_fields:
        items = schema.items if isinstance(schema.items, JSONSchemaProps) else None
        return _in_list(compile_pruning(items)) if items is not None else None
    if schema.type not in ("object", "") or schema.x_kubernetes_int_or_string:
        return None
    declared = {name: compile_pruning(found) for name, found in schema.properties.items()}
    if is_root or schema.x_kubernetes_embedded_resource:
        declared |= dict.fromkeys(META_FIELDS)
    others = schema.additional_properties
    values = compile_pruning(others) if isinstance(others, JSONSchemaProps) else None
    keeps_unknown = bool(schema.x_kubernetes_preserve_unknown_fields) or others not in (None, False)
    if keeps_unknown:
        parts = {name: prune for name, prune in declared.items() if prune is not None}
        return _keeping_unknown(parts, frozenset(declared), values) if parts or values is not None else None
    return _dropping_unknown(declared)


def _in_list(item: Prune | None) -> Prune | None:
    if item is None:
        return None

    def prune(value: Any) -> list[Steps] | None:
        if value.__class__ is not list:
            return None
        found: list[Steps] | None = None
        for index, element in enumerate(value):
            inner = item(element)
            if inner is not None:
                found = [] if found is None else found
                found.extend((index, *steps) for steps in inner)
        return found

    return prune


def _dropping_unknown(declared: dict[str, Prune | None]) -> Prune:
    def prune(value: Any) -> list[Steps] | None:
        if value.__class__ is not dict:
            return None
        found: list[Steps] | None = None
        unknown: list[str] | None = None
        for name, part in value.items():
            try:
                inner = declared[name]
            except KeyError:
                unknown = [] if unknown is None else unknown
                unknown.append(name)
                continue
            if inner is not None:
                below = inner(part)
                if below is not None:
                    found = [] if found is None else found
                    found.extend((name, *steps) for steps in below)
        if unknown is not None:
            for name in unknown:
                del value[name]
            found = [] if found is None else found
            found.extend((name,) for name in unknown)
        return found

    return prune


def _keeping_unknown(parts: dict[str, Prune], declared: frozenset[str], values: Prune | None) -> Prune:
    def prune(value: Any) -> list[Steps] | None:
        if value.__class__ is not dict:
            return None
        found: list[Steps] | None = None
        for name, part in value.items():
            inner = parts.get(name) if name in declared else values
            if inner is not None:
                below = inner(part)
                if below is not None:
                    found = [] if found is None else found
                    found.extend((name, *steps) for steps in below)
        return found

    return prune


def shown(steps: Steps) -> str:
    """The path of a dropped field: `spec.list[0].name`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return text.removeprefix(".")
