"""The fields that a new custom object sets, found once for all objects that have the same ones.

Which fields those are follows from the names in an object, and from no value but those of elements that merge one by
one. So objects are told apart by their outline: their names, down to what is one value for owners. Objects with such
elements, or with parts that no schema describes, have none, and are looked at each time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from dray.api.custom import CustomObject
from dray.api.recent import Bounded
from dray.api.text_memory import text_length
from dray.server.patch.fields import FieldSet
from dray.server.patch.shape import Atomic, Object, Scalar, Shape

MOST: Final = 64
LONGEST: Final = 2048
"""How many outlines are remembered for a kind, and how many letters one may have."""

Find: TypeAlias = Callable[[CustomObject], FieldSet]


class _NoOutline(Exception):
    """More than names decides which fields there are."""


class FirstFields:
    """The fields that new objects of one kind set, as `find` says of the first with an outline."""

    def __init__(self, shape: Object, find: Find) -> None:
        self._find = find
        self._outline = _ObjectOutline(shape)
        self._known: Bounded[Any, FieldSet] = Bounded(MOST)

    def of(self, new: CustomObject) -> FieldSet:
        """What whoever creates an object comes to own."""
        meta = new.metadata
        if meta.owner_references or meta.finalizers:  # which elements there are decides
            return self._find(new)
        try:
            content = self._outline(new.content)
        except (_NoOutline, RecursionError):
            return self._find(new)
        outline = bool(meta.generate_name), tuple(meta.labels), tuple(meta.annotations), content
        fields = self._known.get(outline)
        if fields is None:
            fields = self._find(new)
            if text_length(outline) <= LONGEST:
                self._known.keep(outline, fields)
        return fields


class _ObjectOutline:
    """The outline of objects of a shape: their names, and the outlines of what has fields of its own."""

    __slots__ = ("_declared", "_is_closed", "_parts", "_shape")

    def __init__(self, shape: Object) -> None:
        self._shape: Object | None = shape
        self._declared: frozenset[str] = frozenset()
        self._parts: dict[str, Callable[[Any], Any]] = {}
        self._is_closed = True

    def __call__(self, value: Any) -> Any:
        """What objects with the same fields have in common. Raises _NoOutline."""
        if not value or value.__class__ is not dict:
            return None
        if self._shape is not None:
            self._look_at(self._shape)
        if self._is_closed and not self._declared.issuperset(value):
            raise _NoOutline
        if not self._parts:
            return tuple(value)
        return tuple(value), *[part(value[name]) for name, part in self._parts.items() if name in value]

    def _look_at(self, shape: Object) -> None:
        """When there is a first value: schemas are large, and most of them is never used."""
        found = {name: _outline_of(part) for name, (_, part) in shape.declared.items()}
        self._declared = frozenset(found)
        self._parts = {name: part for name, part in found.items() if part is not None}
        self._is_closed = not isinstance(shape.values, Scalar | Atomic)
        self._shape = None


def _outline_of(shape: Shape) -> Callable[[Any], Any] | None:
    """The outline of values of a shape; None if they are one value, whatever is in them."""
    if isinstance(shape, Scalar | Atomic):
        return None
    return _ObjectOutline(shape) if isinstance(shape, Object) and not shape.is_free_form else _outline_of_nothing


def _outline_of_nothing(value: Any) -> None:
    if value:
        raise _NoOutline
