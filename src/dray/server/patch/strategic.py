"""Strategic merge patches: merge patches that know which lists merge, and by which key.

A patch may hold directives beside fields:

    $patch: replace | delete                on an object, or on an element of a list that merges
    $deleteFromPrimitiveList/<field>        scalars to take out of a list
    $setElementOrder/<field>                the order that elements of a list are to have
    $retainKeys                             the only fields that an object may keep
"""

from __future__ import annotations

from functools import partial
from typing import Any, TypeAlias

from dray.api import schema
from dray.server.patch import strategic_lists
from dray.server.patch.errors import PatchError, bounded_depth
from dray.server.patch.strategic_lists import (
    DELETE_FROM,
    PATCH,
    RETAIN_KEYS,
    SET_ORDER,
    bad_directive,
    is_directive,
    plain,
)

# Where we are in the schema: a kind, a field, or nowhere that is known.
Place: TypeAlias = "schema.Definition | schema.Property | None"


def apply(document: dict[str, Any], patch: Any, definition: schema.Definition) -> dict[str, Any]:
    """The document with the patch merged in.

    Raises PatchError: 400 for a patch or a directive that is none, 422 for lists of lists, and 500, as kube-apiserver
    does, for an element without its merge key and for what else does not fit the schema.
    """
    if not isinstance(patch, dict):
        raise PatchError(400, "error decoding patch: a strategic merge patch must be an object")
    with bounded_depth():
        return _merge_objects(definition, document, patch)


def _merge_objects(place: Place, original: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    if PATCH in patch:
        return _replaced_or_deleted(patch)
    merged = _retain(original, patch)
    ordered = {_field_of(key): order for key, order in patch.items() if key.startswith(SET_ORDER)}
    for name, order in ordered.items():
        _merge_in_order(place, merged, name, patch, order)
    for name, value in patch.items():
        if name not in ordered and not is_directive(name):
            _merge_field(_field(place, name), merged, name, value)
    for key, unwanted in patch.items():
        if key.startswith(DELETE_FROM):
            _delete_scalars(merged, _field_of(key), unwanted)
    return merged


def _replaced_or_deleted(patch: dict[str, Any]) -> dict[str, Any]:
    if patch[PATCH] == "replace":
        replaced: dict[str, Any] = plain(patch)
        return replaced
    if patch[PATCH] == "delete":
        return {}
    raise bad_directive(patch)


def _retain(original: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """A copy of the original that keeps only the fields that the patch says are to be kept."""
    if RETAIN_KEYS not in patch:
        return dict(original)
    given = patch[RETAIN_KEYS]
    keys = {key for key in given if isinstance(key, str)} if isinstance(given, list) else None
    set_fields = {name for name, value in patch.items() if value is not None and not is_directive(name)}
    if keys is None or not set_fields <= keys:
        raise PatchError(400, "invalid patch format of retainKeys")
    return {name: value for name, value in original.items() if name in keys}


def _merge_field(found: schema.Property | None, merged: dict[str, Any], name: str, value: Any) -> None:
    """Sets, merges or deletes one field of an object that is ours to change."""
    known = merged.get(name)
    if value is None:
        merged.pop(name, None)
    elif isinstance(value, dict) and isinstance(known, dict):
        merged[name] = value if _strategy(found) == "replace" else _merge_objects(found, known, value)
    elif isinstance(value, list) and isinstance(known, list):
        merged[name] = _merge_lists(found, known, value)
    elif isinstance(value, dict) and PATCH in value:
        merged.pop(name, None)
    else:
        merged[name] = plain(value)


def _merge_lists(found: schema.Property | None, original: list[Any], patch: list[Any]) -> list[Any]:
    if found is None or _strategy(found) != "merge":
        return patch
    return strategic_lists.merge(original, patch, found.merge_key, partial(_merge_objects, found.items))


def _merge_in_order(place: Place, merged: dict[str, Any], name: str, patch: dict[str, Any], order: Any) -> None:
    """Merges a list and brings its elements into an order."""
    found = _field(place, name)
    if found is None:
        raise PatchError(422, f'unable to find api field "{name[:100]}" of {SET_ORDER}')
    known, given = merged.get(name), patch.get(name)
    if not all(isinstance(elements, list | None) for elements in (order, known, given)) or order is None:
        raise PatchError(400, "invalid patch format of setElementOrder list")
    if known is None and given is None:
        return
    strategic_lists.check_order(given or [], order, found.merge_key)
    if known is None:
        elements = plain(given)
    else:
        elements = known if given is None else _merge_lists(found, known, given)
    merged[name] = strategic_lists.in_order(elements, order, known or [], found.merge_key)


def _delete_scalars(merged: dict[str, Any], name: str, unwanted: Any) -> None:
    if not isinstance(unwanted, list):
        raise PatchError(400, "invalid patch format of primitive list")
    known = merged.get(name)
    if isinstance(known, list):
        merged[name] = strategic_lists.without(known, unwanted)


def _field_of(key: str) -> str:
    """The field that a directive is about."""
    directive, slash, name = key.partition("/")
    if not slash or directive not in (DELETE_FROM, SET_ORDER):
        kind = "primitive" if directive.startswith(DELETE_FROM) else "setElementOrder"
        raise PatchError(400, f"invalid patch format of {kind} list")
    return name


def _field(place: Place, name: str) -> schema.Property | None:
    """What the schema says of a field."""
    if isinstance(place, schema.Property):
        if not place.ref:
            return place.values
        place = schema.definition(place.ref)
    return place.properties.get(name) if place is not None else None


def _strategy(found: schema.Property | None) -> str:
    """How a field merges; that it may retain keys is for whoever makes patches to know."""
    strategies = [one for one in (found.patch_strategy if found else ()) if one != "retainKeys"]
    return strategies[0] if strategies else ""
