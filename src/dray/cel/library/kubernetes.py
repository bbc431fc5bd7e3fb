"""Quantities and semantic versions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dray.api.quantity import Quantity, QuantityError
from dray.api.semver import Semver, SemverError
from dray.cel.declarations import function, member, overload
from dray.cel.types import BOOL, DOUBLE, INT, QUANTITY, SEMVER, STRING
from dray.cel.values import INT_MAX, CelError, ComputedQuantity

__all__ = ["QUANTITIES", "SEMVERS"]


def _quantity(text: str) -> Any:
    try:
        return Quantity.parse(text)
    except QuantityError as error:
        return CelError(str(error))


def _is_quantity(text: str) -> bool:
    return _quantity(text).__class__ is Quantity


def _plain(value: Quantity | ComputedQuantity) -> Quantity:
    return value.quantity if isinstance(value, ComputedQuantity) else value


def _quantity_test(test: Callable[[int, int], Any]) -> Callable[[Any, Any], Any]:
    def call(left: Any, right: Any) -> Any:
        return test(_plain(left).nanos, _plain(right).nanos)

    return call


def _as_integer(value: Quantity | ComputedQuantity) -> Any:
    whole = _plain(value).as_int64()
    return CelError("cannot convert value to integer") if whole is None else whole


def _sign(value: Quantity | ComputedQuantity) -> int:
    return _plain(value).sign()


def _is_integer(value: Quantity | ComputedQuantity) -> bool:
    return _plain(value).is_integer()


def _as_float(value: Quantity | ComputedQuantity) -> float:
    return _plain(value).approximate_float()


def _add(left: Any, right: Any) -> ComputedQuantity:
    return ComputedQuantity(_plain(left) + (right if right.__class__ is int else _plain(right)))


def _sub(left: Any, right: Any) -> ComputedQuantity:
    return ComputedQuantity(_plain(left) - (right if right.__class__ is int else _plain(right)))


def _semver(text: str, normalize: bool = False) -> Any:
    try:
        return Semver.parse_tolerant(text) if normalize else Semver.parse(text)
    except SemverError as error:
        return CelError(str(error))


def _is_semver(text: str, normalize: bool = False) -> bool:
    return _semver(text, normalize).__class__ is Semver


def _wrapped(number: int) -> int:
    """Version numbers are unsigned but shown as int, so the largest ones come out negative."""
    return number if number <= INT_MAX else number - 2**64


_PAIR: Final = (QUANTITY, QUANTITY)
_VERSIONS: Final = (SEMVER, SEMVER)

QUANTITIES: Final = (
    function("quantity", overload("string_to_quantity", (STRING,), QUANTITY, _quantity)),
    function("isQuantity", overload("is_quantity_string", (STRING,), BOOL, _is_quantity)),
    function("sign", overload("quantity_sign", (QUANTITY,), INT, _sign)),
    function(
        "isGreaterThan",
        member("quantity_is_greater_than", _PAIR, BOOL, _quantity_test(lambda left, right: left > right)),
    ),
    function(
        "isLessThan",
        member("quantity_is_less_than", _PAIR, BOOL, _quantity_test(lambda left, right: left < right)),
    ),
    function(
        "compareTo",
        member("quantity_compare_to", _PAIR, INT, _quantity_test(lambda left, right: (left > right) - (left < right))),
    ),
    function("asApproximateFloat", member("quantity_get_float", (QUANTITY,), DOUBLE, _as_float)),
    function("asInteger", member("quantity_get_int", (QUANTITY,), INT, _as_integer)),
    function("isInteger", member("quantity_is_integer", (QUANTITY,), BOOL, _is_integer)),
    function(
        "add",
        member("quantity_add", _PAIR, QUANTITY, _add),
        member("quantity_add_int", (QUANTITY, INT), QUANTITY, _add),
    ),
    function(
        "sub",
        member("quantity_sub", _PAIR, QUANTITY, _sub),
        member("quantity_sub_int", (QUANTITY, INT), QUANTITY, _sub),
    ),
)

SEMVERS: Final = (
    function(
        "semver",
        overload("string_to_semver", (STRING,), SEMVER, _semver),
        overload("string_bool_to_semver", (STRING, BOOL), SEMVER, _semver),
    ),
    function(
        "isSemver",
        overload("is_semver_string", (STRING,), BOOL, _is_semver),
        overload("is_semver_string_bool", (STRING, BOOL), BOOL, _is_semver),
    ),
    function("isGreaterThan", member("semver_is_greater_than", _VERSIONS, BOOL, lambda left, right: left > right)),
    function("isLessThan", member("semver_is_less_than", _VERSIONS, BOOL, lambda left, right: left < right)),
    function("compareTo", member("semver_compare_to", _VERSIONS, INT, lambda left, right: left.compare(right))),
    function("major", member("semver_major", (SEMVER,), INT, lambda version: _wrapped(version.major))),
    function("minor", member("semver_minor", (SEMVER,), INT, lambda version: _wrapped(version.minor))),
    function("patch", member("semver_patch", (SEMVER,), INT, lambda version: _wrapped(version.patch))),
)
