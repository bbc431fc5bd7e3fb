"""Equality and order of values.

Numbers compare across int, uint and double. Values of Kubernetes' own types (quantity, version, address, URL,
format) can only be compared with their own kind: anything else on the right is an error, not "different".
"""

from __future__ import annotations

import math
from typing import Any, Final

from dray.api.quantity import Quantity
from dray.api.semver import Semver
from dray.cel.values import (
    COST_LIMIT,
    MISSING,
    NO_SUCH_OVERLOAD,
    CelError,
    ComputedQuantity,
    ConcatList,
    CostLimitExceeded,
    Duration,
    IPAddress,
    ListValue,
    MapValue,
    NamedFormat,
    NetworkPrefix,
    Optional,
    Timestamp,
    TypeValue,
    Uint,
    Url,
    is_list,
    list_size,
)

__all__ = ["compare", "contains", "equal", "find_index", "is_number"]

_NUMBERS: Final = frozenset({int, Uint, float})
_PLAIN: Final = frozenset({bool, str, bytes})
_TWO_63: Final = float(2**63)
_TWO_64: Final = float(2**64)
_NOT_ORDERED: Final = CelError("NaN values cannot be ordered")


def is_number(value: Any) -> bool:
    """Whether the value is an int, uint or double."""
    return value.__class__ in _NUMBERS


class _Comparison:
    """``known``: what came of comparing two lists or maps, by identity, with both so that an identity is theirs. A list
    may hold another twice, and that one a third: with n such levels there are 2ⁿ ways down, and n pairs to compare.
    ``left``: how many elements may still be looked at. Lists that hold long ones cost next to nothing.
    """

    __slots__ = ("known", "left")

    def __init__(self) -> None:
        self.known: dict[tuple[int, int], tuple[Any, Any, bool | CelError]] = {}
        self.left = COST_LIMIT

    def take(self, elements: int) -> None:
        self.left -= elements
        if self.left < 0:
            raise CostLimitExceeded


def equal(left: Any, right: Any) -> bool | CelError:
    """``left == right``. Raises CostLimitExceeded."""
    kind = left.__class__
    if kind in _PLAIN:
        return kind is right.__class__ and left == right
    return _equal(left, right, _Comparison())


def _equal(left: Any, right: Any, so_far: _Comparison) -> bool | CelError:
    kind = left.__class__
    if kind in _PLAIN:
        return kind is right.__class__ and left == right
    if kind in _NUMBERS:
        if kind is right.__class__:
            return bool(left == right)
        return right.__class__ in _NUMBERS and _compare_numbers(left, right) == 0
    if left is None or right is None:
        return left is right
    if is_list(left):
        return is_list(right) and _equal_parts(left, right, so_far)
    if isinstance(left, MapValue):
        return isinstance(right, MapValue) and left.type_name == right.type_name and _equal_parts(left, right, so_far)
    return _equal_objects(left, right, so_far)


def _equal_parts(left: Any, right: Any, so_far: _Comparison) -> bool | CelError:
    key = (id(left), id(right))
    found = so_far.known.get(key)
    if found is None:
        verdict = _equal_lists(left, right, so_far) if is_list(left) else _equal_maps(left, right, so_far)
        found = so_far.known[key] = left, right, verdict
    return found[2]


def compare(left: Any, right: Any) -> int | CelError:
    """-1, 0 or 1; an error for values that have no order between them."""
    kind = left.__class__
    other = right.__class__
    if kind in _NUMBERS and other in _NUMBERS:
        return _compare_numbers(left, right)
    if kind is not other:
        return NO_SUCH_OVERLOAD
    if kind in _PLAIN:
        return _order(left, right)
    if kind is Duration or kind is Timestamp:
        return _order(left.nanos, right.nanos)
    return NO_SUCH_OVERLOAD


def contains(values: ListValue, wanted: Any) -> bool:
    """``wanted in values``. Elements that cannot be compared are not it. Raises CostLimitExceeded."""
    return find_index(values, wanted) >= 0


def find_index(values: ListValue, wanted: Any) -> int:
    """Where the first equal element is, or -1. Raises CostLimitExceeded."""
    so_far = _Comparison()
    so_far.take(list_size(values))
    for index, value in enumerate(values):
        if _equal(value, wanted, so_far) is True:
            return index
    return -1


def _compare_numbers(left: Any, right: Any) -> int | CelError:
    if left.__class__ is float:
        if right.__class__ is float:
            if math.isnan(left) or math.isnan(right):
                return _NOT_ORDERED
            return _order(left, right)
        return _compare_double(left, right)
    if right.__class__ is float:
        order = _compare_double(right, left)
        return order if isinstance(order, CelError) else -order
    return _order(left, right)


def _order(left: Any, right: Any) -> int:
    return int(left > right) - int(left < right)


def _compare_double(double: float, whole: int) -> int | CelError:
    """A double against an int or uint: the integer is rounded to a double first."""
    if math.isnan(double):
        return _NOT_ORDERED
    low, high = (0.0, _TWO_64) if whole.__class__ is Uint else (-_TWO_63, _TWO_63)
    if double < low:
        return -1
    if double > high:
        return 1
    rounded = float(whole)
    return _order(double, rounded)


def _equal_lists(left: ListValue, right: ListValue, so_far: _Comparison) -> bool | CelError:
    """An element that cannot be compared counts as equal, unless the left list is a concatenation."""
    if list_size(left) != list_size(right):
        return False
    so_far.take(list_size(left))
    error: CelError | None = None
    for mine, theirs in zip(left, right, strict=True):
        verdict = _equal(mine, theirs, so_far)
        if verdict is False:
            return False
        if error is None and isinstance(verdict, CelError):
            error = verdict
    if error is not None and left.__class__ is ConcatList:
        return error
    return True


def _equal_maps(left: MapValue, right: MapValue, so_far: _Comparison) -> bool:
    if len(left) != len(right):
        return False
    for key in left.keys():  # noqa: SIM118 - a MapValue is no Python mapping
        theirs = right.find(key)
        if theirs is MISSING or _equal(left.find(key), theirs, so_far) is False:
            return False
    return True


def _equal_objects(left: Any, right: Any, so_far: _Comparison) -> bool | CelError:
    kind = left.__class__
    same = kind is right.__class__
    if kind is Quantity:
        return left.nanos == right.nanos if same else NO_SUCH_OVERLOAD
    if kind is ComputedQuantity:
        return left.quantity.nanos == right.nanos if right.__class__ is Quantity else NO_SUCH_OVERLOAD
    if kind is Duration or kind is Timestamp:
        return same and left.nanos == right.nanos
    if kind is TypeValue:
        return same and left.name == right.name
    if kind is Optional:
        return same and _equal_optionals(left, right, so_far)
    if not same:
        return NO_SUCH_OVERLOAD
    if kind is Semver:
        return bool(left == right)
    if kind is IPAddress:
        return bool(left.address == right.address)
    if kind is NetworkPrefix:
        return bool(left.address == right.address and left.bits == right.bits)
    if kind is Url:
        return bool(left.text == right.text)
    if kind is NamedFormat:
        return bool(left.name == right.name)
    return NO_SUCH_OVERLOAD


def _equal_optionals(left: Optional, right: Optional, so_far: _Comparison) -> bool | CelError:
    if not (left.has_value and right.has_value):
        return left.has_value == right.has_value
    return _equal(left.value, right.value, so_far)
