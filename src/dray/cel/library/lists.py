"""Functions on lists: the extension library (version 3), Kubernetes' own, and sets."""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key
from typing import Any, Final

from dray.cel import types
from dray.cel.declarations import Overload, function, member, overload
from dray.cel.equality import compare, contains, equal, find_index, is_number
from dray.cel.library.operators import add
from dray.cel.types import BOOL, BYTES, DOUBLE, DURATION, DYN, INT, STRING, TIMESTAMP, UINT, Type
from dray.cel.values import (
    COST_LIMIT,
    NO_SUCH_OVERLOAD,
    CelError,
    CostLimitExceeded,
    Duration,
    ListValue,
    Timestamp,
    Uint,
    is_list,
    limit_elements,
    list_size,
)

__all__ = ["COMPARABLE", "EXTENSION", "INCLUDES", "KUBERNETES", "SETS"]

COMPARABLE: Final = (INT, UINT, DOUBLE, BOOL, DURATION, TIMESTAMP, STRING, BYTES)
"""Element types that have an order."""

_MAX_RANGE: Final = 1_000_000
_MOST_FLATTENED: Final = 20_000
"""Elements and lists that are walked through for one call: lists that are in themselves again and again are paid for as
if they were short, and nobody can stop the walk."""
_ORDERED: Final = (int, Uint, float, bool, Duration, Timestamp, str, bytes)


def _slice(values: ListValue, start: int, end: int) -> Any:
    size = list_size(values)
    if start < 0 or end < 0:
        return CelError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        return CelError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if size < end:
        return CelError(f"cannot slice({start}, {end}), list is length {size}")
    if end - start > COST_LIMIT:
        raise CostLimitExceeded
    return [values[index] for index in range(start, end)]


def _flatten(values: Any, depth: Any = 1) -> Any:
    if not is_list(values) or depth.__class__ is not int:
        return NO_SUCH_OVERLOAD
    if depth < 0:
        return CelError("level must be non-negative")
    flat: list[Any] = []
    opened = 0  # lists, which may be empty ones
    pending = [(iter(limit_elements(values)), depth)]
    while pending:
        iterator, levels = pending[-1]
        for value in iterator:
            if levels > 0 and is_list(value):
                opened += 1
                pending.append((iter(limit_elements(value)), levels - 1))
                break
            flat.append(value)
            if len(flat) > _MOST_FLATTENED:
                raise CostLimitExceeded
        else:
            pending.pop()
        if opened > _MOST_FLATTENED:
            raise CostLimitExceeded
    return flat


def _sort(values: ListValue) -> Any:
    return _sort_by_keys(values, values) if is_list(values) else NO_SUCH_OVERLOAD


def _sort_by_keys(values: ListValue, keys: ListValue) -> Any:
    """The values in the order of their keys, which must be of one type that has an order."""
    if not is_list(values) or not is_list(keys):
        return NO_SUCH_OVERLOAD
    ordered = list(limit_elements(keys))
    if not ordered:
        return values
    if ordered[0].__class__ not in _ORDERED:
        return CelError("list elements must be comparable")
    if len(ordered) > 1 and any(key.__class__ is not ordered[0].__class__ for key in ordered):
        return CelError("list elements must have the same type")
    positions = sorted(range(len(ordered)), key=lambda index: _Key(ordered[index]))
    return [values[index] for index in positions]


_Key: Final = cmp_to_key(lambda left, right: _order(left, right))


def _order(left: Any, right: Any) -> int:
    order = compare(left, right)
    return 0 if isinstance(order, CelError) else order


def _range(count: int) -> Any:
    if count < 0:
        return CelError(f"lists.range: size must be non-negative, got {count}")
    if count > _MAX_RANGE:
        return CelError(f"lists.range: size {count} exceeds maximum allowed ({_MAX_RANGE})")
    return list(range(count))


def _reverse(values: ListValue) -> list[Any]:
    reversed_values = list(limit_elements(values))
    reversed_values.reverse()
    return reversed_values


def _distinct(values: ListValue) -> Any:
    """The first of every group of equal elements. Primitive values are found by hash, others one by one."""
    unique: list[Any] = []
    seen: set[Any] = set()
    others: list[Any] = []
    for value in limit_elements(values):
        if value.__class__ in (str, bytes, bool) or (is_number(value) and value == value):
            key = (bool if value.__class__ is bool else None, value)
            if key in seen:
                continue
            seen.add(key)
        elif any(equal(value, other) is True for other in others):
            continue
        else:
            others.append(value)
            if len(others) ** 2 > COST_LIMIT:
                raise CostLimitExceeded
        unique.append(value)
    return unique


def _is_sorted(values: ListValue) -> Any:
    previous: Any = None
    for index, value in enumerate(limit_elements(values)):
        if value.__class__ not in _ORDERED:
            return NO_SUCH_OVERLOAD
        if index and compare(previous, value) == 1:
            return False
        previous = value
    return True


def _sum(zero: Any) -> Callable[[ListValue], Any]:
    def call(values: ListValue) -> Any:
        total = zero
        for value in limit_elements(values):
            total = add(total, value)
            if total.__class__ is CelError:
                return total
        return total

    return call


def _extreme(name: str, better: int) -> Callable[[ListValue], Any]:
    """The element that compares as ``better`` to all others, the first of equal ones."""

    def call(values: ListValue) -> Any:
        best: Any = None
        for index, value in enumerate(limit_elements(values)):
            if value.__class__ not in _ORDERED:
                return NO_SUCH_OVERLOAD
            if index == 0 or compare(value, best) == better:
                best = value
        return best if list_size(values) else CelError(f"{name} called on empty list")

    return call


def _last_index_of(values: ListValue, wanted: Any) -> int:
    for index in range(list_size(limit_elements(values)) - 1, -1, -1):
        if equal(values[index], wanted) is True:
            return index
    return -1


def _includes(target: Any, wanted: Any) -> bool:
    if is_list(target):
        return find_index(target, wanted) >= 0
    return equal(target, wanted) is True


def _sets_intersect(left: ListValue, right: ListValue) -> bool:
    _limit_product(left, right)
    return any(contains(right, value) for value in left)


def _set_contains(values: ListValue, subset: ListValue) -> bool:
    _limit_product(values, subset)
    return all(contains(values, value) for value in subset)


def _sets_equivalent(left: ListValue, right: ListValue) -> bool:
    return _set_contains(left, right) and _set_contains(right, left)


def _limit_product(left: ListValue, right: ListValue) -> None:
    if list_size(left) * list_size(right) > COST_LIMIT:
        raise CostLimitExceeded


_T: Final = types.parameter("T")
_A: Final = types.parameter("A")
_LIST: Final = types.list_of(_T)
_DYN_LIST: Final = types.list_of(DYN)
_A_LIST: Final = types.list_of(_A)
_ZEROS: Final[tuple[tuple[Type, Any], ...]] = ((INT, 0), (UINT, Uint(0)), (DOUBLE, 0.0), (DURATION, Duration(0)))


def _per_type(template: str, result: Type | None, implementation: Any) -> list[Overload]:
    """One overload per comparable element type; the result is the element type unless given."""
    return [member(template.format(of.text), (types.list_of(of),), result or of, implementation) for of in COMPARABLE]


EXTENSION: Final = (
    function("slice", member("list_slice", (_LIST, INT, INT), _LIST, _slice, is_lazy=True)),
    function(
        "flatten",
        member("list_flatten", (types.list_of(_LIST),), _LIST, _flatten),
        member("list_flatten_int", (_DYN_LIST, INT), _DYN_LIST, _flatten),
        is_guarded=False,
    ),
    function(
        "sort",
        *(member(f"list_{of.name}_sort", (types.list_of(of),), types.list_of(of)) for of in COMPARABLE),
        implementation=_sort,
    ),
    function(
        "@sortByAssociatedKeys",
        *(member(f"list_{of.name}_sortByAssociatedKeys", (_LIST, types.list_of(of)), _LIST) for of in COMPARABLE),
        implementation=_sort_by_keys,
    ),
    function("lists.range", overload("lists_range", (INT,), types.list_of(INT), _range)),
    function("reverse", member("list_reverse", (_LIST,), _LIST, _reverse)),
    function("distinct", member("list_distinct", (_LIST,), _LIST, _distinct)),
)

KUBERNETES: Final = (
    function("isSorted", *_per_type("list_{}_is_sorted_bool", BOOL, _is_sorted)),
    function(
        "sum",
        *(member(f"list_{of.text}_sum_{of.text}", (types.list_of(of),), of, _sum(zero)) for of, zero in _ZEROS),
    ),
    function("max", *_per_type("list_{0}_max_{0}", None, _extreme("max", 1))),
    function("min", *_per_type("list_{0}_min_{0}", None, _extreme("min", -1))),
    function("indexOf", member("list_a_index_of_int", (_A_LIST, _A), INT, find_index)),
    function("lastIndexOf", member("list_a_last_index_of_int", (_A_LIST, _A), INT, _last_index_of)),
)

INCLUDES: Final = (function("includes", member("list_includes_dyn_dyn", (DYN, DYN), BOOL, _includes)),)

SETS: Final = (
    function("sets.contains", overload("list_sets_contains_list", (_LIST, _LIST), BOOL, _set_contains)),
    function("sets.equivalent", overload("list_sets_equivalent_list", (_LIST, _LIST), BOOL, _sets_equivalent)),
    function("sets.intersects", overload("list_sets_intersects_list", (_LIST, _LIST), BOOL, _sets_intersect)),
)
