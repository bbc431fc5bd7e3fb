"""Whether an applied object is one of its type: known fields only, values of the right kind, elements told apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dray.api.field import shown
from dray.server.patch import fields
from dray.server.patch.shape import Atomic, ElementError, Elements, Object, Scalar, Sequence, Shape


def problems(shape: Shape, value: Any, path: str = "") -> Iterator[str]:
    """What is wrong with a value, each with the path to it, such as `.spec.bogus: field not declared in schema`."""
    if value is None:
        return
    if isinstance(shape, Atomic):
        shape = shape.content
    if isinstance(shape, Scalar):
        expected = _EXPECTED[shape.kind]
        if not _is_scalar(value, shape.kind):
            yield f"{path}: expected {expected}, got {shown(value)}"
    elif isinstance(shape, Object):
        yield from _problems_of_object(shape, value, path)
    elif isinstance(shape, Elements | Sequence):
        yield from _problems_of_list(shape, value, path)


_EXPECTED = {
    "string": "string",
    "number": "numeric (int or float)",
    "boolean": "boolean",
    "": "any scalar",
}


def _is_scalar(value: Any, kind: str) -> bool:
    if kind == "boolean":
        return isinstance(value, bool)
    if kind == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, str) if kind == "string" else isinstance(value, str | int | float)


def _problems_of_object(shape: Object, value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        if not shape.is_free_form:
            yield f"{path}: expected map, got {shown(value)}"
        return
    for name, part in value.items():
        step, part_shape = shape.field(name)
        if name not in shape.declared and shape.values is None:
            yield f"{path}{fields.show(step)}: field not declared in schema"
            return
        yield from problems(part_shape, part, path + fields.show(step))


def _problems_of_list(shape: Elements | Sequence, value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{path}: expected list, got {shown(value)}"
        return
    seen = set()
    for position, element in enumerate(value):
        if isinstance(shape, Sequence):
            yield from problems(shape.item, element, f"{path}[{position}]")
            continue
        try:
            step = shape.step(element)
        except ElementError as error:
            yield f"{path}: element {position}: {error}"
            return
        if step in seen:
            yield f"{path}: duplicate entries for key {fields.show(step)}"
        seen.add(step)
        yield from problems(shape.item, element, path + fields.show(step))
