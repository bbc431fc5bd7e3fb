"""The functions of the language itself: sizes, conversions, tests on strings."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from dray.cel import types
from dray.cel.declarations import Overload, function, member, overload
from dray.cel.library.operators import MAX_TIMESTAMP, MIN_TIMESTAMP, OVERFLOW, UNSIGNED_OVERFLOW
from dray.cel.library.times import duration_text, parse_duration, parse_timestamp, timestamp_text
from dray.cel.number_text import parse_decimal_int, parse_double_text, shortest
from dray.cel.types import BOOL, BYTES, DOUBLE, DURATION, DYN, INT, STRING, TIMESTAMP, UINT, Type
from dray.cel.values import (
    INT_MAX,
    INT_MIN,
    NO_SUCH_OVERLOAD,
    UINT_MAX,
    CelError,
    Duration,
    MapValue,
    Timestamp,
    TypeValue,
    Uint,
    is_list,
    list_size,
    type_value,
)

__all__ = ["CONVERSIONS", "FUNCTIONS", "size", "to_string"]

CONVERSIONS: Final = frozenset(
    {"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"}
)
"""Functions that are computed at compile time when their argument is a constant."""

_BOOLS: Final = {
    "1": True, "t": True, "T": True, "true": True, "TRUE": True, "True": True,
    "0": False, "f": False, "F": False, "false": False, "FALSE": False, "False": False,
}  # fmt: skip


_WITH_LENGTH: Final = frozenset((str, bytes, list))


def size(value: Any) -> Any:
    """The number of letters, bytes, elements or entries."""
    if value.__class__ in _WITH_LENGTH or isinstance(value, MapValue):
        return len(value)
    return list_size(value) if is_list(value) else NO_SUCH_OVERLOAD


def _identity(value: Any) -> Any:
    return value


def _no_conversion(value: str, target: Type) -> CelError:
    shown = value if len(value) <= 40 else value[:40] + "…"
    return CelError(f"type conversion error from 'string' {shown!r} to '{target.name}'")


def _to_int(value: Any) -> Any:
    if value.__class__ is float:
        if math.isnan(value) or not -(2.0**63) < value < 2.0**63:
            return OVERFLOW
        return int(value)
    if value.__class__ is Uint:
        return int(value) if value <= INT_MAX else OVERFLOW
    if value.__class__ is Duration:
        return value.nanos
    if value.__class__ is Timestamp:
        return value.nanos // 10**9
    parsed = parse_decimal_int(value, INT_MIN, INT_MAX)
    return _no_conversion(value, INT) if parsed is None else parsed


def _to_uint(value: Any) -> Any:
    if value.__class__ is float:
        if math.isnan(value) or not 0 <= value < 2.0**64:
            return UNSIGNED_OVERFLOW
        return Uint(value)
    if value.__class__ is int:
        return Uint(value) if value >= 0 else UNSIGNED_OVERFLOW
    parsed = None if value[:1] in ("+", "-") else parse_decimal_int(value, 0, UINT_MAX)
    return _no_conversion(value, UINT) if parsed is None else Uint(parsed)


def _to_double(value: Any) -> Any:
    if value.__class__ is not str:
        return float(value)
    parsed = parse_double_text(value)
    return _no_conversion(value, DOUBLE) if parsed is None else parsed


def _to_bool(value: str) -> Any:
    return _BOOLS.get(value, _no_conversion(value, BOOL))


def _to_bytes(value: str) -> bytes:
    return value.encode()


def _to_duration(value: str) -> Any:
    return parse_duration(value) or _no_conversion(value, DURATION)


def _to_timestamp(value: Any) -> Any:
    if value.__class__ is int:
        if not MIN_TIMESTAMP <= value <= MAX_TIMESTAMP:
            return CelError("timestamp overflow")
        return Timestamp(value * 10**9)
    return parse_timestamp(value) or _no_conversion(value, TIMESTAMP)


def to_string(value: Any) -> Any:
    """``string(value)``."""
    kind = value.__class__
    if kind is str:
        return value
    if kind is bool:
        return "true" if value else "false"
    if kind is int or kind is Uint:
        return str(int(value))
    if kind is float:
        return shortest(value)
    if kind is bytes:
        return _decode(value)
    if kind is Duration:
        return duration_text(value)
    if kind is Timestamp:
        return timestamp_text(value)
    if kind is TypeValue:
        return value.name
    return NO_SUCH_OVERLOAD


def _decode(value: bytes) -> Any:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return CelError("invalid UTF-8 in bytes, cannot convert to string")


def _text_test(test: Callable[[str, str], bool]) -> Callable[[Any, Any], Any]:
    def call(text: Any, part: Any) -> Any:
        if text.__class__ is not str or part.__class__ is not str:
            return NO_SUCH_OVERLOAD
        return test(text, part)

    return call


_A: Final = types.parameter("A")
_B: Final = types.parameter("B")
_SIZED: Final = (
    ("bytes", BYTES),
    ("list", types.list_of(_A)),
    ("map", types.map_of(_A, _B)),
    ("string", STRING),
)


def _conversions(target: Type, convert: Callable[[Any], Any], *sources: tuple[str, Type]) -> list[Overload]:
    """Overloads that convert to the target; the first source is the target itself."""
    return [overload(id, (source,), target, _identity if source is target else convert) for id, source in sources]


def _string_test(name: str, id: str, test: Callable[[str, str], bool]) -> Any:
    return function(name, member(id, (STRING, STRING), BOOL, _text_test(test)), is_guarded=False)


FUNCTIONS: Final = (
    function(
        "size",
        *(overload(f"size_{name}", (of,), INT) for name, of in _SIZED),
        *(member(f"{name}_size", (of,), INT) for name, of in _SIZED),
        implementation=size,
    ),
    function("type", overload("type", (_A,), types.type_of(_A)), implementation=type_value),
    function("dyn", overload("to_dyn", (_A,), DYN), implementation=_identity),
    function("bool", *_conversions(BOOL, _to_bool, ("bool_to_bool", BOOL), ("string_to_bool", STRING))),
    function("bytes", *_conversions(BYTES, _to_bytes, ("bytes_to_bytes", BYTES), ("string_to_bytes", STRING))),
    function(
        "double",
        *_conversions(
            DOUBLE,
            _to_double,
            ("double_to_double", DOUBLE),
            ("int64_to_double", INT),
            ("string_to_double", STRING),
            ("uint64_to_double", UINT),
        ),
    ),
    function(
        "duration",
        *_conversions(DURATION, _to_duration, ("duration_to_duration", DURATION), ("string_to_duration", STRING)),
    ),
    function(
        "int",
        *_conversions(
            INT,
            _to_int,
            ("int64_to_int64", INT),
            ("double_to_int64", DOUBLE),
            ("duration_to_int64", DURATION),
            ("string_to_int64", STRING),
            ("timestamp_to_int64", TIMESTAMP),
            ("uint64_to_int64", UINT),
        ),
    ),
    function(
        "string",
        *_conversions(
            STRING,
            to_string,
            ("string_to_string", STRING),
            ("bool_to_string", BOOL),
            ("bytes_to_string", BYTES),
            ("double_to_string", DOUBLE),
            ("duration_to_string", DURATION),
            ("int64_to_string", INT),
            ("timestamp_to_string", TIMESTAMP),
            ("uint64_to_string", UINT),
        ),
    ),
    function(
        "timestamp",
        *_conversions(
            TIMESTAMP,
            _to_timestamp,
            ("timestamp_to_timestamp", TIMESTAMP),
            ("int64_to_timestamp", INT),
            ("string_to_timestamp", STRING),
        ),
    ),
    function(
        "uint",
        *_conversions(
            UINT,
            _to_uint,
            ("uint64_to_uint64", UINT),
            ("double_to_uint64", DOUBLE),
            ("int64_to_uint64", INT),
            ("string_to_uint64", STRING),
        ),
    ),
    _string_test("contains", "contains_string", lambda text, part: part in text),
    _string_test("endsWith", "ends_with_string", str.endswith),
    _string_test("startsWith", "starts_with_string", str.startswith),
)
