"""What an expression can use: variables, functions, and the types that it can name or make.

``DEVICES`` is the environment of selectors; others are made of the same functions and other variables.

There are two modes. A *new* expression is checked at API validation with the libraries of the previous minor
version, so that a cluster can be rolled back; a *stored* one may use every library. In this version the two
differ in nothing but limits, since ``includes`` comes with list attributes in either.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from dray.cel import types
from dray.cel.declarations import Function
from dray.cel.library import (
    formats,
    kubernetes,
    lists,
    network,
    operators,
    optional,
    regex,
    standard,
    strings,
    times,
    urls,
)
from dray.cel.types import Type

__all__ = ["ANY_FIELD", "DEVICES", "FUNCTIONS", "MAX_LENGTH", "TYPE_NAMES", "Environment", "Mode", "merge"]

Mode: TypeAlias = Literal["new", "stored"]

MAX_LENGTH: Final = 10 * 1024
"""Longest new expression in bytes (4381-50)."""

_CAPACITIES: Final = types.map_of(types.STRING, types.map_of(types.STRING, types.QUANTITY))
_ATTRIBUTES: Final = types.map_of(types.STRING, types.map_of(types.STRING, types.DYN))

_DEVICE_FIELDS: Final[dict[str, Type]] = {
    "driver": types.STRING,
    "allowMultipleAllocations": types.BOOL,
    "attributes": _ATTRIBUTES,
    "capacity": _CAPACITIES,
}
"""The fields of ``device`` (4381-81)."""

TYPE_NAMES: Final[dict[str, Type]] = {
    denoted.name: denoted
    for denoted in (
        types.BOOL,
        types.BYTES,
        types.DOUBLE,
        types.DURATION,
        types.INT,
        types.list_of(types.DYN),
        types.map_of(types.DYN, types.DYN),
        types.NULL,
        types.STRING,
        types.TIMESTAMP,
        types.TYPE,
        types.UINT,
        types.optional_of(types.DYN),
        types.IP,
        types.CIDR,
    )
}
"""Names that stand for a type, as in ``type(x) == int``."""


def merge(*libraries: tuple[Function, ...]) -> dict[str, Function]:
    """The functions of some libraries by name."""
    functions: dict[str, Function] = {}
    for library in libraries:
        for declared in library:
            known = functions.get(declared.name)
            functions[declared.name] = declared if known is None else known.merged(declared)
    return functions


FUNCTIONS: Final = merge(
    operators.FUNCTIONS,
    standard.FUNCTIONS,
    times.FUNCTIONS,
    urls.FUNCTIONS,
    regex.FUNCTIONS,
    lists.KUBERNETES,
    optional.FUNCTIONS,
    kubernetes.QUANTITIES,
    strings.FUNCTIONS,
    lists.SETS,
    network.IPS,
    network.CIDRS,
    formats.FUNCTIONS,
    kubernetes.SEMVERS,
    lists.EXTENSION,
    lists.INCLUDES,
)
"""Every function by name."""


Fields: TypeAlias = Mapping[str, Type]
"""The fields of a struct."""

ANY_FIELD: Final = "*"
"""Stands for all fields of a struct that has any field."""


@dataclass(frozen=True, slots=True, eq=False)
class Environment:
    """What there is to name. The order of the ``variables`` is the order in which their values are given.

    A variable may have dots in its name. ``structs`` are types with fields, by name; the ``makeable`` ones can be
    written as ``Name{field: value}``, and so can those below them (``Name.field{}``).
    """

    variables: Mapping[str, Type]
    structs: Mapping[str, Fields] = field(default_factory=dict)
    makeable: frozenset[str] = frozenset()
    functions: Mapping[str, Function] = field(default_factory=lambda: FUNCTIONS)

    def makes(self, name: str) -> Fields | None:
        """The fields of a type that can be made; None if there is no such type."""
        if name in self.makeable:
            return self.structs[name]
        root = name.partition(".")[0]
        if root in self.makeable and root != name and ANY_FIELD in self.structs[root]:
            return self.structs[root]
        return None

    def fields(self, struct: str) -> Fields:
        """The fields of a struct; none if it has none to select."""
        return self.structs.get(struct) or self.makes(struct) or {}


DEVICES: Final = Environment({"device": types.DEVICE}, {types.DEVICE.name: _DEVICE_FIELDS})
"""For selectors (4381-81)."""
