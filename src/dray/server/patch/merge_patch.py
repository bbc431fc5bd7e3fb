"""JSON merge patches (RFC 7386): objects merge, null deletes, anything else replaces."""

from __future__ import annotations

from typing import Any

from dray.server.patch.errors import PatchError, bounded_depth


def apply(document: dict[str, Any], patch: Any) -> dict[str, Any]:
    """The document with the patch merged in.

    Raises PatchError (400) if the patch is no object: it would make something of the document that is no API object.
    """
    if not isinstance(patch, dict):
        raise PatchError(400, "error decoding patch: a merge patch must be an object")
    with bounded_depth():
        return merge(document, patch)


def merge(target: Any, patch: dict[str, Any]) -> dict[str, Any]:
    """What an object of a patch makes of a value; what is no object counts as an empty one."""
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, dict):
            merged[name] = merge(merged.get(name), value)
        else:
            merged[name] = _without_nulls(value)
    return merged


def _without_nulls(value: Any) -> Any:
    """Objects inside of a list are new, so there is nothing that their nulls could take away."""
    if isinstance(value, list):
        return [_without_nulls(element) for element in value]
    if isinstance(value, dict):
        return {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}
    return value
