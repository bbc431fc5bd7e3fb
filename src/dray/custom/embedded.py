"""Objects inside of custom objects (`x-kubernetes-embedded-resource`): names and metadata count as an object's own do.

When a document is read, their metadata gets its form: what is of a wrong type is an error, what nobody knows is dropped
and named. When it is written, their names and metadata are judged, whether or not the update changed them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from dray.api import codec
from dray.api.field import FieldError, Reason, invalid, required
from dray.api.generated.apiextensions import JSONSchemaProps
from dray.api.meta import ObjectMeta
from dray.custom.problems import Check, MapKey, Problem, Steps, path_of
from dray.validation import names
from dray.validation.metadata import PATH_SEGMENT, validate_metadata

Places: TypeAlias = Callable[[Any, Steps], Iterator[tuple[Steps, dict[str, Any]]]]
"""Finds the objects inside of a value, with the steps to each."""
_NAMES: Final = ("apiVersion", "kind")


def compile_places(schema: JSONSchemaProps) -> Places | None:
    """The function that finds embedded objects in values of a schema; None if there can be none."""
    parts = {name: made for name, found in schema.properties.items() if (made := compile_places(found)) is not None}
    others, items = schema.additional_properties, schema.items
    values = compile_places(others) if isinstance(others, JSONSchemaProps) else None
    item = compile_places(items) if isinstance(items, JSONSchemaProps) else None
    is_embedded = schema.x_kubernetes_embedded_resource
    if not parts and values is None and item is None and not is_embedded:
        return None
    declared = frozenset(schema.properties)

    def places(value: Any, steps: Steps) -> Iterator[tuple[Steps, dict[str, Any]]]:
        if value.__class__ is dict:
            if is_embedded:
                yield steps, value
            for name, part in value.items():
                inner = parts.get(name) if name in declared else values
                if inner is not None:
                    yield from inner(part, (*steps, name if name in declared else MapKey(name)))
        elif value.__class__ is list and item is not None:
            for index, element in enumerate(value):
                yield from item(element, (*steps, index))

    return places


def read(places: Places, document: dict[str, Any]) -> tuple[list[str], list[FieldError]]:
    """Brings the metadata of embedded objects into its form; the paths that were dropped, and what cannot be read."""
    unknown: list[str] = []
    errors: list[FieldError] = []
    for steps, found in places(document, ()):
        path = path_of(steps)
        errors += [
            FieldError(Reason.TYPE_INVALID, f"{path}.{name}", "Invalid type: must be a string")
            for name in _NAMES
            if name in found and found[name].__class__ is not str
        ]
        if "metadata" not in found:
            continue
        given = found["metadata"]
        reading = codec.read({} if given is None else given, ObjectMeta)
        where = f"{path}.metadata"
        errors += [
            FieldError(error.reason, f"{where}.{error.field}" if error.field else where, error.message)
            for error in reading.errors
        ]
        unknown += [f"{where}.{each}" for each in reading.unknown]
        if reading.obj is not None:
            found["metadata"] = codec.to_builtins(reading.obj)
    return unknown, errors


def compile_embedded(schema: JSONSchemaProps) -> Check | None:
    """The function that judges names and metadata of embedded objects; None if there can be none."""
    places = compile_places(schema)
    if places is None:
        return None

    def check(value: Any) -> list[Problem] | None:
        return [one for steps, found in places(value, ()) for one in _problems(steps, found)] or None

    return check


def _problems(steps: Steps, found: dict[str, Any]) -> Iterator[Problem]:
    path = path_of(steps)
    errors = [required(f"{path}.{name}", "must not be empty") for name in _NAMES if name not in found]
    errors += [
        invalid(f"{path}.{name}", found[name], "must not be empty") for name in _NAMES if not found.get(name, True)
    ]
    version, kind = found.get("apiVersion"), found.get("kind")
    if isinstance(version, str) and version.count("/") > 1:
        errors.append(invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}"))
    if isinstance(kind, str) and kind:
        why = ",".join(names.dns_1035_label(kind.lower()))
        if why:
            said = f"may have mixed case, but should otherwise match: {why}"
            errors.append(invalid(f"{path}.kind", kind, said))
    meta = codec.read(found.get("metadata") or {}, ObjectMeta).obj
    if meta is not None:
        named = meta if meta.name else replace(meta, name="unnamed")
        validate_metadata(errors, named, PATH_SEGMENT, namespaced=bool(meta.namespace), path=f"{path}.metadata")
    return (Problem((), _told(error), is_transition=True) for error in errors)


def _told(error: FieldError) -> Callable[[str], FieldError]:
    return lambda _path: error
