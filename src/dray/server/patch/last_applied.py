"""Objects that `kubectl apply` wrote before it applied on the server.

Such an object has an annotation with what was applied last. When kubectl then applies on the server, it takes over
what it had set that way without conflicts, and the annotation is kept up to date for older clients.
"""

from __future__ import annotations

from typing import Any

import msgspec

from dray.api.well_known import LAST_APPLIED
from dray.server.patch import check, fields
from dray.server.patch.compare import compare
from dray.server.patch.entries import Owner
from dray.server.patch.fields import FieldSet
from dray.server.patch.managed import Write

MANAGER = "kubectl"
_MAX_ANNOTATIONS = 256 * 1024


def not_allowed(conflicts: dict[Owner, FieldSet], live: dict[str, Any], write: Write) -> dict[Owner, FieldSet]:
    """The conflicts that remain when kubectl may overwrite what it applied from the client."""
    allowed = _still_as_applied(live, write) if write.manager == MANAGER else {}
    if not allowed:
        return conflicts
    remaining = {owner: fields.difference(found, allowed) for owner, found in conflicts.items()}
    return {owner: found for owner, found in remaining.items() if found}


def sync(new: dict[str, Any], applied: dict[str, Any], write: Write) -> dict[str, Any]:
    """The object with the annotation, if it has one, saying what kubectl now applied."""
    if write.manager != MANAGER or not _annotations(new).get(LAST_APPLIED):
        return new
    annotations = {**_annotations(new), LAST_APPLIED: _encode(applied)}
    if sum(len(key) + len(value) for key, value in annotations.items()) > _MAX_ANNOTATIONS:
        del annotations[LAST_APPLIED]
    return {**new, "metadata": {**new["metadata"], "annotations": annotations}}


def _still_as_applied(live: dict[str, Any], write: Write) -> FieldSet:
    """The fields of the annotation that the live object still has with the same values."""
    applied = _decode(_annotations(live).get(LAST_APPLIED))
    if applied is None or applied.get("apiVersion") != write.api_version:
        return {}
    if any(check.problems(write.shape, applied)):
        return {}
    found = write.shape.applied_fields(applied) or {}
    for change in compare(write.shape, applied, live):
        found = fields.difference(found, change)
    return found


def _annotations(document: dict[str, Any]) -> dict[str, Any]:
    metadata = document.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return annotations if isinstance(annotations, dict) else {}


def _decode(text: Any) -> dict[str, Any] | None:
    try:
        found = msgspec.json.decode(text) if isinstance(text, str) else None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _encode(applied: dict[str, Any]) -> str:
    annotations = {name: value for name, value in _annotations(applied).items() if name != LAST_APPLIED}
    metadata = {name: value for name, value in applied["metadata"].items() if name != "annotations"}
    if annotations:
        metadata["annotations"] = annotations
    return msgspec.json.encode({**applied, "metadata": metadata}, order="deterministic").decode() + "\n"
