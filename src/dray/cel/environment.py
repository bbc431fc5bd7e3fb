"""What an expression can use: the functions of its mode, the variable ``device``, and the names of types.

There are two modes. A *new* expression is checked at API validation with the libraries of the previous minor
version, so that a cluster can be rolled back; a *stored* one may use every library. In this version the two
differ in nothing but limits, since ``includes`` comes with list attributes in either.
"""

from __future__ import annotations

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

__all__ = ["DEVICE_FIELDS", "FUNCTIONS", "MAX_LENGTH", "TYPE_NAMES", "VARIABLES", "Mode"]

Mode: TypeAlias = Literal["new", "stored"]

MAX_LENGTH: Final = 10 * 1024
"""Longest new expression in bytes (4381-50)."""

_CAPACITIES: Final = types.map_of(types.STRING, types.map_of(types.STRING, types.QUANTITY))
_ATTRIBUTES: Final = types.map_of(types.STRING, types.map_of(types.STRING, types.DYN))

DEVICE_FIELDS: Final[dict[str, Type]] = {
    "driver": types.STRING,
    "allowMultipleAllocations": types.BOOL,
    "attributes": _ATTRIBUTES,
    "capacity": _CAPACITIES,
}
"""The fields of ``device`` (4381-81)."""

VARIABLES: Final[dict[str, Type]] = {"device": types.DEVICE}

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


def _merge(*libraries: tuple[Function, ...]) -> dict[str, Function]:
    functions: dict[str, Function] = {}
    for library in libraries:
        for declared in library:
            known = functions.get(declared.name)
            functions[declared.name] = declared if known is None else known.merged(declared)
    return functions


FUNCTIONS: Final = _merge(
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
