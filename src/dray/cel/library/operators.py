"""Operators on values: arithmetic, comparison, indexing, membership."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from dray.cel import types
from dray.cel.declarations import Function, Overload, function, overload
from dray.cel.equality import compare, contains
from dray.cel.types import BOOL, BYTES, DOUBLE, DURATION, INT, STRING, TIMESTAMP, UINT, Type
from dray.cel.values import (
    INT_MAX,
    INT_MIN,
    NO_SUCH_OVERLOAD,
    UINT_MAX,
    CelError,
    ConcatList,
    Duration,
    MapValue,
    MutableList,
    Timestamp,
    Uint,
    is_list,
    limit_elements,
    list_size,
)

__all__ = [
    "FUNCTIONS", "MAX_TIMESTAMP", "MIN_TIMESTAMP", "ORDERS", "OVERFLOW", "UNSIGNED_OVERFLOW", "add",
    "checked_timestamp",
]  # fmt: skip

OVERFLOW: Final = CelError("integer overflow")
UNSIGNED_OVERFLOW: Final = CelError("unsigned integer overflow")
_TIMESTAMP_OVERFLOW: Final = CelError("timestamp overflow")
_DIVISION: Final = CelError("division by zero")
_MODULUS: Final = CelError("modulus by zero")

_SECOND: Final = 10**9
MIN_TIMESTAMP: Final = -62135596800
MAX_TIMESTAMP: Final = 253402300799


def _checked_int(value: int) -> int | CelError:
    return value if INT_MIN <= value <= INT_MAX else OVERFLOW


def _checked_uint(value: int) -> Uint | CelError:
    return Uint(value) if 0 <= value <= UINT_MAX else UNSIGNED_OVERFLOW


def checked_timestamp(nanos: int, offset_seconds: int) -> Timestamp | CelError:
    seconds = nanos // _SECOND
    if not MIN_TIMESTAMP <= seconds <= MAX_TIMESTAMP:
        return _TIMESTAMP_OVERFLOW
    return Timestamp(nanos, offset_seconds)


def _checked_duration(nanos: int) -> Duration | CelError:
    return Duration(nanos) if INT_MIN <= nanos <= INT_MAX else OVERFLOW


def add(left: Any, right: Any) -> Any:
    """``left + right``."""
    kind = left.__class__
    if kind is right.__class__:
        if kind is int:
            return _checked_int(left + right)
        if kind is str or kind is float or kind is bytes:
            return left + right
        if kind is Uint:
            return _checked_uint(int(left) + int(right))
        if kind is Duration:
            return _checked_duration(left.nanos + right.nanos)
    if is_list(left):
        return _concatenate(left, right) if is_list(right) else NO_SUCH_OVERLOAD
    if kind is Duration and right.__class__ is Timestamp:
        return checked_timestamp(right.nanos + left.nanos, right.offset_seconds)
    if kind is Timestamp and right.__class__ is Duration:
        return checked_timestamp(left.nanos + right.nanos, left.offset_seconds)
    return NO_SUCH_OVERLOAD


def _concatenate(left: list[Any] | ConcatList, right: list[Any] | ConcatList) -> list[Any] | ConcatList:
    if isinstance(left, MutableList):
        left.extend(limit_elements(right))
        return left
    if list_size(left) == 0:
        return right
    if list_size(right) == 0:
        return left
    return ConcatList(left, right)


def _subtract(left: Any, right: Any) -> Any:
    kind = left.__class__
    if kind is right.__class__:
        if kind is int:
            return _checked_int(left - right)
        if kind is float:
            return left - right
        if kind is Uint:
            return _checked_uint(int(left) - int(right))
        if kind is Duration or kind is Timestamp:
            return _checked_duration(left.nanos - right.nanos)
    if kind is Timestamp and right.__class__ is Duration:
        if right.nanos == INT_MIN:
            return OVERFLOW
        return checked_timestamp(left.nanos - right.nanos, left.offset_seconds)
    return NO_SUCH_OVERLOAD


def _multiply(left: Any, right: Any) -> Any:
    kind = left.__class__
    if kind is not right.__class__:
        return NO_SUCH_OVERLOAD
    if kind is int:
        return _checked_int(left * right)
    if kind is float:
        return left * right
    if kind is Uint:
        return _checked_uint(int(left) * int(right))
    return NO_SUCH_OVERLOAD


def _divide(left: Any, right: Any) -> Any:
    kind = left.__class__
    if kind is not right.__class__:
        return NO_SUCH_OVERLOAD
    if kind is float:
        return _divide_doubles(left, right)
    if kind is not int and kind is not Uint:
        return NO_SUCH_OVERLOAD
    if right == 0:
        return _DIVISION
    quotient = abs(int(left)) // abs(int(right))
    if kind is Uint:
        return Uint(quotient)
    return _checked_int(quotient if (left < 0) == (right < 0) else -quotient)


def _divide_doubles(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def _modulo(left: Any, right: Any) -> Any:
    kind = left.__class__
    if kind is not right.__class__ or (kind is not int and kind is not Uint):
        return NO_SUCH_OVERLOAD
    if right == 0:
        return _MODULUS
    if left == INT_MIN and right == -1:
        return OVERFLOW
    remainder = abs(int(left)) % abs(int(right))
    return Uint(remainder) if kind is Uint else (-remainder if left < 0 else remainder)


def _negate(value: Any) -> Any:
    if value.__class__ is int:
        return _checked_int(-value)
    if value.__class__ is float:
        return -value
    if value.__class__ is Duration:
        return _checked_duration(-value.nanos)
    return NO_SUCH_OVERLOAD


def _not(value: Any) -> Any:
    return not value if value.__class__ is bool else NO_SUCH_OVERLOAD


def _not_strictly_false(value: Any) -> bool:
    return value is not False


def _ordered(verdict: Callable[[int], bool]) -> Callable[[Any, Any], Any]:
    def compare_values(left: Any, right: Any) -> Any:
        order = compare(left, right)
        return order if isinstance(order, CelError) else verdict(order)

    return compare_values


def _in(value: Any, container: Any) -> Any:
    if is_list(container):
        return contains(container, value)
    if isinstance(container, MapValue):
        return container.has(value)
    return NO_SUCH_OVERLOAD


_A: Final = types.parameter("A")
_B: Final = types.parameter("B")
_LIST: Final = types.list_of(_A)
_MAP: Final = types.map_of(_A, _B)

_COMPARED: Final[tuple[tuple[str, Type, Type], ...]] = (
    ("bool", BOOL, BOOL),
    ("int64", INT, INT),
    ("int64_double", INT, DOUBLE),
    ("int64_uint64", INT, UINT),
    ("uint64", UINT, UINT),
    ("uint64_double", UINT, DOUBLE),
    ("uint64_int64", UINT, INT),
    ("double", DOUBLE, DOUBLE),
    ("double_int64", DOUBLE, INT),
    ("double_uint64", DOUBLE, UINT),
    ("string", STRING, STRING),
    ("bytes", BYTES, BYTES),
    ("timestamp", TIMESTAMP, TIMESTAMP),
    ("duration", DURATION, DURATION),
)


ORDERS: Final[dict[Callable[..., Any], str]] = {}
"""How Python writes what an implementation says of two integers."""


def _comparison(symbol: str, name: str, verdict: Callable[[int], bool]) -> Function:
    overloads = (overload(f"{name}_{suffix}", (left, right), BOOL) for suffix, left, right in _COMPARED)
    implementation = _ordered(verdict)
    ORDERS[implementation] = symbol
    return function(f"_{symbol}_", *overloads, implementation=implementation)


def _binary(id: str, left: Type, right: Type, result: Type) -> Overload:
    return overload(id, (left, right), result)


FUNCTIONS: Final = (
    function("_?_:_", overload("conditional", (BOOL, _A, _A), _A)),
    function("_&&_", overload("logical_and", (BOOL, BOOL), BOOL)),
    function("_||_", overload("logical_or", (BOOL, BOOL), BOOL)),
    function("!_", overload("logical_not", (BOOL,), BOOL), implementation=_not),
    function(
        "@not_strictly_false",
        overload("not_strictly_false", (BOOL,), BOOL),
        implementation=_not_strictly_false,
        accepts_errors=True,
    ),
    function("_==_", overload("equals", (_A, _A), BOOL)),
    function("_!=_", overload("not_equals", (_A, _A), BOOL)),
    function(
        "_+_",
        _binary("add_bytes", BYTES, BYTES, BYTES),
        _binary("add_double", DOUBLE, DOUBLE, DOUBLE),
        _binary("add_duration_duration", DURATION, DURATION, DURATION),
        _binary("add_duration_timestamp", DURATION, TIMESTAMP, TIMESTAMP),
        _binary("add_timestamp_duration", TIMESTAMP, DURATION, TIMESTAMP),
        _binary("add_int64", INT, INT, INT),
        _binary("add_list", _LIST, _LIST, _LIST),
        _binary("add_string", STRING, STRING, STRING),
        _binary("add_uint64", UINT, UINT, UINT),
        implementation=add,
    ),
    function(
        "_/_",
        _binary("divide_double", DOUBLE, DOUBLE, DOUBLE),
        _binary("divide_int64", INT, INT, INT),
        _binary("divide_uint64", UINT, UINT, UINT),
        implementation=_divide,
    ),
    function(
        "_%_",
        _binary("modulo_int64", INT, INT, INT),
        _binary("modulo_uint64", UINT, UINT, UINT),
        implementation=_modulo,
    ),
    function(
        "_*_",
        _binary("multiply_double", DOUBLE, DOUBLE, DOUBLE),
        _binary("multiply_int64", INT, INT, INT),
        _binary("multiply_uint64", UINT, UINT, UINT),
        implementation=_multiply,
    ),
    function(
        "-_",
        overload("negate_double", (DOUBLE,), DOUBLE),
        overload("negate_int64", (INT,), INT),
        implementation=_negate,
    ),
    function(
        "_-_",
        _binary("subtract_double", DOUBLE, DOUBLE, DOUBLE),
        _binary("subtract_duration_duration", DURATION, DURATION, DURATION),
        _binary("subtract_int64", INT, INT, INT),
        _binary("subtract_timestamp_duration", TIMESTAMP, DURATION, TIMESTAMP),
        _binary("subtract_timestamp_timestamp", TIMESTAMP, TIMESTAMP, DURATION),
        _binary("subtract_uint64", UINT, UINT, UINT),
        implementation=_subtract,
    ),
    _comparison("<", "less", lambda order: order < 0),
    _comparison("<=", "less_equals", lambda order: order <= 0),
    _comparison(">", "greater", lambda order: order > 0),
    _comparison(">=", "greater_equals", lambda order: order >= 0),
    function("_[_]", overload("index_list", (_LIST, INT), _A), overload("index_map", (_MAP, _A), _B)),
    function(
        "@in",
        overload("in_list", (_A, _LIST), BOOL),
        overload("in_map", (_A, _MAP), BOOL),
        implementation=_in,
    ),
)
