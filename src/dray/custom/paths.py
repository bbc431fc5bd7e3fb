"""The simple paths of definitions: `.spec.replicas`, as subresources and selectable fields name what they mean."""

from __future__ import annotations

from typing import Any

MISSING: Any = object()


def steps_of(path: str) -> tuple[str, ...]:
    """`.spec.replicas` → ("spec", "replicas")."""
    return tuple(path.removeprefix(".").split("."))


def look_up(document: dict[str, Any], steps: tuple[str, ...]) -> Any:
    """The value that steps lead to, MISSING if there is none."""
    value: Any = document
    for step in steps:
        if value.__class__ is not dict or step not in value:
            return MISSING
        value = value[step]
    return value


def put(document: dict[str, Any], steps: tuple[str, ...], value: Any) -> dict[str, Any]:
    """The document with another value at the end of steps; what is not on the way is shared."""
    first, *rest = steps
    inner = document.get(first)
    below = put(inner if isinstance(inner, dict) else {}, tuple(rest), value) if rest else value
    return {**document, first: below}
