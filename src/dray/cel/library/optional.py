"""Optional values, and the map insertion that two-variable comprehensions use.

``or`` and ``orValue`` have no implementation here: they decide whether their argument is evaluated at all, so
the planner knows them.
"""

from __future__ import annotations

from typing import Any, Final

from dray.cel import types
from dray.cel.declarations import function, member, overload
from dray.cel.types import BOOL, DYN, INT, STRING
from dray.cel.values import (
    CelError,
    ConcatList,
    Duration,
    ListValue,
    LiteralMap,
    MapValue,
    MutableMap,
    Optional,
    Timestamp,
    limit_elements,
    list_size,
    size_of,
)

__all__ = ["FUNCTIONS", "NONE"]

NONE: Final = Optional()

# The zero timestamp is the first moment of the year 1.
_ZERO_TIME: Final = -62135596800 * 10**9


def _of(value: Any) -> Optional:
    return Optional(value)


def _of_non_zero(value: Any) -> Optional:
    return NONE if _is_zero(value) else Optional(value)


def _is_zero(value: Any) -> bool:
    if value is None or (value.__class__ is bool and not value):
        return True
    if isinstance(value, (int, float)):
        return value == 0
    if isinstance(value, (str, bytes, list, ConcatList, MapValue)):
        return size_of(value) == 0
    if isinstance(value, Duration):
        return value.nanos == 0
    return isinstance(value, Timestamp) and value.nanos == _ZERO_TIME


def _none() -> Optional:
    return NONE


def _value(optional: Optional) -> Any:
    return optional.value if optional.has_value else CelError("optional.none() dereference")


def _has_value(optional: Optional) -> bool:
    return optional.has_value


def _unwrap(values: ListValue) -> Any:
    unwrapped = []
    for value in limit_elements(values):
        if not isinstance(value, Optional):
            return CelError("an element of the list is not optional")
        if value.has_value:
            unwrapped.append(value.value)
    return unwrapped


def _first(values: ListValue) -> Optional:
    return Optional(values[0]) if list_size(values) else NONE


def _last(values: ListValue) -> Optional:
    size = list_size(values)
    return Optional(values[size - 1]) if size else NONE


def _insert(target: MapValue, key: Any, value: Any) -> Any:
    if target.has(key):
        return CelError(f"insert failed: key {key} already exists")
    if isinstance(target, MutableMap):
        target.insert(key, value)
        return target
    items = [(existing, target.find(existing)) for existing in target.keys()]  # noqa: SIM118 - a MapValue is no Python mapping
    return LiteralMap([*items, (key, value)])


def _insert_all(target: MapValue, update: MapValue) -> Any:
    merged: Any = target
    for key in update.keys():  # noqa: SIM118 - a MapValue is no Python mapping
        merged = _insert(merged, key, update.find(key))
        if merged.__class__ is CelError:
            return merged
    return merged


_K: Final = types.parameter("K")
_V: Final = types.parameter("V")
_OPTIONAL: Final = types.optional_of(_V)
_LIST: Final = types.list_of(_V)
_MAP: Final = types.map_of(_K, _V)
_OPTIONALS: Final = types.list_of(_OPTIONAL)

FUNCTIONS: Final = (
    function("optional.of", overload("optional_of", (_V,), _OPTIONAL, _of)),
    function("optional.ofNonZeroValue", overload("optional_ofNonZeroValue", (_V,), _OPTIONAL, _of_non_zero)),
    function("optional.none", overload("optional_none", (), _OPTIONAL, _none, is_lazy=True)),
    function("value", member("optional_value", (_OPTIONAL,), _V, _value)),
    function("hasValue", member("optional_hasValue", (_OPTIONAL,), BOOL, _has_value)),
    function("or", member("optional_or_optional", (_OPTIONAL, _OPTIONAL), _OPTIONAL)),
    function("orValue", member("optional_orValue_value", (_OPTIONAL, _V), _V)),
    function("_?._", overload("select_optional_field", (DYN, STRING), _OPTIONAL)),
    function(
        "_[?_]",
        overload("list_optindex_optional_int", (_LIST, INT), _OPTIONAL),
        overload("optional_list_optindex_optional_int", (types.optional_of(_LIST), INT), _OPTIONAL),
        overload("map_optindex_optional_value", (_MAP, _K), _OPTIONAL),
        overload("optional_map_optindex_optional_value", (types.optional_of(_MAP), _K), _OPTIONAL),
    ),
    function(
        "_[_]",
        overload("optional_list_index_int", (types.optional_of(_LIST), INT), _OPTIONAL),
        overload("optional_map_index_value", (types.optional_of(_MAP), _K), _OPTIONAL),
    ),
    function("last", member("list_last", (_LIST,), _OPTIONAL, _last)),
    function("first", member("list_first", (_LIST,), _OPTIONAL, _first)),
    function("optional.unwrap", overload("optional_unwrap", (_OPTIONALS,), _LIST, _unwrap)),
    function("unwrapOpt", member("optional_unwrapOpt", (_OPTIONALS,), _LIST, _unwrap)),
    function(
        "cel.@mapInsert",
        overload("@mapInsert_map_key_value", (_MAP, _K, _V), _MAP, _insert, is_lazy=True),
        overload("@mapInsert_map_map", (_MAP, _MAP), _MAP, _insert_all),
    ),
)
