"""Texts for fields, shown by `kubectl explain`: those that many kinds share, and those of device kinds."""

from __future__ import annotations

COMMON = {
    "apiVersion": "The group and version that the object is written in.",
    "kind": "The kind of the object.",
    "metadata": "Identity, labels, annotations and ownership of the object.",
    "spec": "What is wanted.",
    "status": "What is the case, as the responsible component reports it.",
    "items": "The objects of the list.",
    "conditions": "What is known about the object, one entry per type.",
    "Quantity": "A number with an optional unit, such as `40Gi`, `500m` or `2`.",
    "IntOrString": "A number, or text such as `25%`.",
    "Time": "A point in time in UTC, such as `2026-06-01T12:00:00Z`.",
    "MicroTime": "A point in time in UTC with microseconds.",
    "RawExtension": "Any object; the component that it is meant for knows its fields.",
    "Patch": "A change, in the format that the content type names.",
}

TEXTS: dict[str, dict[str, str]] = {}
