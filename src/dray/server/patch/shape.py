"""How the values of a type merge: as one value, field by field, or element by element.

`of(definition)` makes the shape of a kind from the facts of `dray.api.schema`, once. The shapes walk values on the hot
path of every write: `all_fields` gives the set of a value that was not there before, with every path in it;
`applied_fields` gives what somebody who applies a value wants to own, which leaves out objects and lists that
are only there to hold something.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cache, cached_property
from typing import Any, Protocol, TypeAlias

import msgspec

from dray.api import schema
from dray.server.patch import fields
from dray.server.patch.fields import LEAF, SELF, FieldSet

Json: TypeAlias = Any


class Shape:
    """A value that is one and whole; the shapes that have parts derive from it."""

    def all_fields(self, _value: Json) -> FieldSet:
        """The node of a value that is new, with every path in it."""
        return LEAF

    def applied_fields(self, _value: Json) -> FieldSet | None:
        """The node of a value that is applied; None if there is nothing to own."""
        return LEAF

    def part(self, _step: str) -> Shape:
        """The shape of what a step leads to."""
        return FREE_FORM

    def is_declared(self, _step: str) -> bool:
        """Whether a step leads to a field that the type declares, as opposed to a key or an element."""
        return False


class Scalar(Shape):
    """A string, number or boolean; `kind` is one of JSON's types, or empty where any of them will do."""

    def __init__(self, kind: str) -> None:
        self.kind = kind


class Atomic(Shape):
    """An object or a list that is replaced as a whole. `content` is what it must look like."""

    def __init__(self, content: Shape) -> None:
        self.content = content


class Sequence(Shape):
    """The content of an atomic list."""

    def __init__(self, item: Shape) -> None:
        self.item = item


class Object(Shape):
    """An object with declared fields, or a map if `values` is given."""

    is_free_form = False
    """Whether a value need not be an object at all."""

    def __init__(self, properties: dict[str, schema.Property], values: schema.Property | Shape | None) -> None:
        self._properties = properties
        self._values = values

    @cached_property
    def declared(self) -> dict[str, tuple[str, Shape]]:
        """Step and shape of each declared field. Made on first use: a type may hold itself."""
        return {name: (f"f:{name}", _of_property(found)) for name, found in self._properties.items()}

    @cached_property
    def values(self) -> Shape | None:
        """The shape of what a key that is not declared holds; None if there may be none."""
        return _of_property(self._values) if isinstance(self._values, schema.Property) else self._values

    @cached_property
    def _leaves(self) -> bool:
        return not self._properties and isinstance(self.values, Scalar | Atomic)

    def field(self, name: str) -> tuple[str, Shape]:
        """The step to a field, and its shape."""
        return self.declared.get(name) or (f"f:{name}", self.values or FREE_FORM)

    def all_fields(self, value: Json) -> FieldSet:
        if not value or not isinstance(value, dict):
            return LEAF
        found: FieldSet = {SELF: LEAF}
        if self._leaves:
            for name in value:
                found["f:" + name] = LEAF
            return found
        declared = self.declared
        for name, part in value.items():
            step, shape = declared.get(name) or self.field(name)
            found[step] = shape.all_fields(part)
        return found

    def applied_fields(self, value: Json) -> FieldSet | None:
        if not value or not isinstance(value, dict):
            return LEAF
        found: FieldSet = {}
        for name, part in value.items():
            step, shape = self.field(name)
            node = shape.applied_fields(part)
            if name not in self.declared:
                found[step] = fields.as_member(node or LEAF)
            elif node is not None:
                found[step] = node
        return found or None

    def part(self, step: str) -> Shape:
        return self.field(step[2:])[1]

    def is_declared(self, step: str) -> bool:
        return step[2:] in self.declared


class _FreeForm(Object):
    """A value of unknown type: maps merge key by key, anything else is one value."""

    is_free_form = True

    def __init__(self) -> None:
        super().__init__({}, self)


class Elements(Shape, ABC):
    """A list whose elements merge one by one."""

    def __init__(self, item: Shape) -> None:
        self.item = item

    @abstractmethod
    def step(self, element: Json) -> str:
        """The step to an element. Raises ElementError if the list cannot have it."""

    def all_fields(self, value: Json) -> FieldSet:
        if not value or not isinstance(value, list):
            return LEAF
        found: FieldSet = {SELF: LEAF}
        for element in value:
            step = self.step(element)
            # Elements that cannot be told apart are owned together, as one value.
            found[step] = LEAF if step in found else self.item.all_fields(element)
        return found

    def applied_fields(self, value: Json) -> FieldSet | None:
        if value is None:
            return LEAF
        found = {self.step(element): fields.as_member(self.item.applied_fields(element) or LEAF) for element in value}
        return found or None

    def part(self, _step: str) -> Shape:
        return self.item


class ElementError(ValueError):
    """An element that a list cannot have."""


class Unique(Elements):
    """A list that is a set of scalars."""

    def step(self, element: Json) -> str:
        if isinstance(element, dict):
            raise ElementError("associative list without keys has an element that's a map type")
        if isinstance(element, list):
            raise ElementError("not supported: associative list with lists as elements")
        if element is None:
            raise ElementError("associative list without keys has an element that's an explicit null")
        return fields.value_step(element)


class Keyed(Elements):
    """A list of objects that `keys` tell apart."""

    def __init__(self, item: Shape, keys: tuple[str, ...], defaults: dict[str, Json]) -> None:
        super().__init__(item)
        self.keys = tuple(sorted(keys))
        self._defaults = defaults

    def step(self, element: Json) -> str:
        if not isinstance(element, dict):
            what = "a null element" if element is None else "non-map elements"
            raise ElementError(f"associative list with keys may not have {what}")
        keys = {}
        for key in self.keys:
            if key in element:
                keys[key] = element[key]
            elif key in self._defaults:
                keys[key] = self._defaults[key]
        if not keys:
            named = " ".join(f'"{key}"' for key in self.keys)
            raise ElementError(
                f"associative list with keys has an element that omits all key fields [{named}] "
                "(and doesn't have default values for any key fields)"
            )
        return "k:" + msgspec.json.encode(keys).decode()


FREE_FORM: Shape = _FreeForm()
UNKNOWN: Shape = Atomic(FREE_FORM)
"""What only those know whom it is meant for, such as the data of a driver: nobody else can tell what its parts mean."""


class Inline(Protocol):
    """A definition that brings its shape along."""

    @property
    def shape(self) -> Object:
        """The shape of the kind."""
        ...


def of(definition: schema.Definition | Inline) -> Object:
    """The shape of a kind."""
    if not isinstance(definition, schema.Definition):
        return definition.shape
    shape = _of_definition(definition.name)
    if not isinstance(shape, Object):
        raise TypeError(f"{definition.name} is no kind")
    return shape


def zero(definition: schema.Definition | Inline) -> dict[str, Json]:
    """An object of a kind as it is before anybody set a field: with the fields that are always there."""
    if not isinstance(definition, schema.Definition):
        return {}
    return _zero(definition.name)


@cache
def _zero(name: str) -> dict[str, Json]:
    definition = schema.definition(name)
    return {
        name: _zero(found.ref) if found.default == {} and found.ref else found.default
        for name, found in definition.properties.items()
        if found.default in ({}, "", 0)
    } | {name: None for name in definition.required if definition.properties[name].type in ("array", "object")}


@cache
def _of_definition(name: str) -> Shape:
    definition = schema.definition(name)
    if definition.properties:
        content = Object(definition.properties, None)
        return Atomic(content) if definition.map_type == "atomic" else content
    if definition.type in ("object", "") and not definition.one_of:
        return UNKNOWN
    return Scalar("" if definition.format or definition.one_of else definition.type)


def _of_property(found: schema.Property) -> Shape:
    if found.ref:
        shape = _of_definition(found.ref)
        return Atomic(shape) if found.map_type == "atomic" and not isinstance(shape, Atomic) else shape
    if found.type == "array":
        return _of_list(found)
    if found.type == "object":
        content: Shape = Object({}, found.values) if found.values is not None else FREE_FORM
        return Atomic(content) if found.map_type == "atomic" else content
    if found.type == "string":
        return Scalar("string" if found.format in ("", "byte") else "")
    return Scalar("number" if found.type == "integer" else found.type)


def _of_list(found: schema.Property) -> Shape:
    items = found.items or schema.Property()
    item = _of_property(items)
    if found.list_type == "set":
        return Unique(item)
    if found.list_type == "map":
        return Keyed(item, found.map_keys, _defaults(items, found.map_keys))
    if not found.list_type and "merge" in found.patch_strategy:
        keys = (found.merge_key,) if found.merge_key else ()
        return Keyed(item, keys, _defaults(items, keys)) if keys else Unique(item)
    return Atomic(Sequence(item))


def _defaults(items: schema.Property, keys: tuple[str, ...]) -> dict[str, Json]:
    properties = schema.definition(items.ref).properties if items.ref else {}
    return {
        key: properties[key].default
        for key in keys
        if key in properties and properties[key].default not in (msgspec.UNSET, None)
    }
