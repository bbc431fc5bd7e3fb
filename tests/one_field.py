"""Manifests in which one field more is set, for every field of a kind: made from the OpenAPI facts alone."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

from dray.api import schema
from dray.api.schema import Definition, Property

Manifest = dict[str, Any]
Path = tuple[str | int, ...]
Owners = tuple[tuple[str, str], ...]
_FIXED = frozenset({"apiVersion", "kind", "metadata", "status"})
_DEEPEST = 12
_VALUES: dict[str, Any] = {
    "Quantity": "1",
    "IntOrString": 1,
    "Time": "2026-01-02T03:04:05Z",
    "MicroTime": "2026-01-02T03:04:05.000000Z",
    "JSON": {"a": "b"},
    "RawExtension": {"a": "b"},
}
"""Types that are values."""
_TEXTS = {"byte": "YQ==", "date-time": "2026-01-02T03:04:05Z"}


class OneField(NamedTuple):
    """A manifest, the types and fields on the way to the one that was set, where that is, and what it was set to."""

    manifest: Manifest
    owners: Owners
    path: Path
    value: Any

    @property
    def words(self) -> str:
        """The path as warnings have it: `spec.volumes[].ephemeral`."""
        text = ""
        for step in self.path:
            text += "[]" if isinstance(step, int) else f".{step}"
        return text.removeprefix(".")


def one_by_one(base: Manifest, hints: dict[str, Any]) -> Iterator[OneField]:
    """Every field of every object that the base has, and of those in it; `hints` are values by the name of the field.

    A field that the base has is left as it is: what is in it is gone through.
    """
    group, _, version = base["apiVersion"].rpartition("/")
    walk = _Walk(base, hints)
    yield from walk.fields(base, schema.for_kind(group, version, base["kind"]), (), ())


class _Walk:
    """Through one manifest."""

    def __init__(self, base: Manifest, hints: dict[str, Any]) -> None:
        self._base = base
        self._hints = hints

    def fields(self, value: Manifest, known: Definition, path: Path, owners: Owners) -> Iterator[OneField]:
        """Those of an object, and of what is in it."""
        short = known.name.rpartition(".")[2]
        for name, prop in known.properties.items():
            if path[-1:] == ("metadata",) or (name in _FIXED and "metadata" in known.properties):
                continue
            way = (*owners, (short, name))
            if name in value:
                yield from self._inside(value[name], prop, (*path, name), way)
                continue
            given = self._hints.get(f"{short}.{name}", self._hints.get(name))
            made = example(prop, self._hints, name) if given is None else given
            changed = copy.deepcopy(self._base)
            _at(changed, path)[name] = made
            yield OneField(changed, way, (*path, name), made)

    def _inside(self, value: Any, prop: Property, path: Path, owners: Owners) -> Iterator[OneField]:
        if isinstance(value, list) and prop.items is not None:
            for index, item in enumerate(value):
                yield from self._inside(item, prop.items, (*path, index), owners)
        elif isinstance(value, dict) and prop.ref:
            yield from self.fields(value, schema.definition(prop.ref), path, owners)


def _at(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


def example(prop: Property, hints: dict[str, Any], name: str, depth: int = 0) -> Any:
    """A value of that type, with the fields that it needs, that is not empty."""
    short = prop.ref.rpartition(".")[2]
    if short in _VALUES:
        return _VALUES[short]
    if short in hints:
        return hints[short]
    if prop.ref:
        return _object(schema.definition(prop.ref), hints, depth)
    if prop.enum:
        return prop.enum[0]
    match prop.type:
        case "array" if prop.items is not None:
            return [example(prop.items, hints, name, depth + 1)]
        case "integer" | "number":
            return 1
        case "boolean":
            return True
        case "string":
            return _TEXTS.get(prop.format, "a")
    return {"a": example(prop.values, hints, name, depth + 1) if prop.values is not None else "b"}


def _object(known: Definition, hints: dict[str, Any], depth: int) -> Any:
    """With what is required, or the first field if nothing is; deep ones stay empty."""
    if depth > _DEEPEST or not known.properties:
        return {}
    short = known.name.rpartition(".")[2]
    names = known.required or tuple(known.properties)[:1]
    made: Manifest = {}
    for name in names:
        given = hints.get(f"{short}.{name}", hints.get(name))
        made[name] = example(known.properties[name], hints, name, depth + 1) if given is None else given
    return made
