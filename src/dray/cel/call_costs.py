"""What a call costs at run time, given its arguments and its result.

Calls that are not listed cost 1. Costs follow Kubernetes: walking a string costs a tenth per character,
walking a list the sum of its elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from dray.api.quantity import Quantity
from dray.api.semver import Semver
from dray.cel.equality import is_number
from dray.cel.library.lists import COMPARABLE
from dray.cel.values import (
    COST_LIMIT,
    CelError,
    ComputedQuantity,
    InternalError,
    IPAddress,
    MapValue,
    NamedFormat,
    NetworkPrefix,
    Optional,
    Url,
    is_list,
    list_size,
    size_of,
)

__all__ = ["CallCost", "call_cost", "equality_cost", "tenth"]

CallCost: TypeAlias = Callable[[Sequence[Any], Any], int]

_LIST_BASE: Final = 10
_STRUCT_BASE: Final = 40
_UNIT_EQUALITY: Final = (Quantity, ComputedQuantity, IPAddress, NetworkPrefix, NamedFormat, Url, Semver)


def tenth(size: int) -> int:
    """The cost of walking a string of this size, rounded up."""
    return -(-size // 10)


def quarter(size: int) -> int:
    """The cost factor of a regular expression of this size, rounded up."""
    return -(-size // 4)


def call_cost(function: str, overload: str) -> CallCost | None:
    """The cost function of a call, or None if it always costs 1. ``overload`` may be empty, if it is not known."""
    return _BY_OVERLOAD.get(overload) or _BY_FUNCTION.get(function) or _STANDARD.get(overload)


def equality_cost(args: Sequence[Any], _result: Any = None) -> int:
    """``==``: walking the smaller side. Kubernetes' own types cost 1."""
    left, right = args
    if left.__class__ in _UNIT_EQUALITY:
        return 1
    return tenth(min(_deep_size(left), _deep_size(right)))


def _smaller(args: Sequence[Any], _result: Any = None) -> int:
    """``!=`` and the order of strings: walking the smaller side, whatever its type."""
    return tenth(min(_deep_size(args[0]), _deep_size(args[1])))


def _deep_size(value: Any) -> int:
    while value.__class__ is Optional and value.has_value:
        value = value.value
    return size_of(value)


def _traversal(value: Any) -> int:
    """The cost of walking a whole value."""
    return _walk(value, {})


def _walk(value: Any, known: dict[int, tuple[Any, int]]) -> int:
    """What a value costs. A list that stands in several places is looked at once, and counted in all of them."""
    if value.__class__ is str:
        return len(value.encode(errors="surrogatepass")) // 10
    if value.__class__ is bytes:
        return len(value) // 10
    if id(value) in known:
        return known[id(value)][1]
    if isinstance(value, MapValue):
        cost = sum(_walk(key, known) + _walk(value.find(key), known) for key in value.keys())  # noqa: SIM118 - a MapValue is no Python mapping
    elif not is_list(value):
        return 1
    elif list_size(value) > COST_LIMIT:
        return list_size(value)
    else:
        cost = sum(1 if is_number(element) else _walk(element, known) for element in value)
    known[id(value)] = value, cost
    return cost


def _first_traversal(args: Sequence[Any], _result: Any) -> int:
    return _traversal(args[0])


def _first_tenth(args: Sequence[Any], _result: Any) -> int:
    return tenth(size_of(args[0]))


def _first_tenth_deep(args: Sequence[Any], _result: Any) -> int:
    return tenth(_deep_size(args[0]))


def _second_tenth(args: Sequence[Any], _result: Any) -> int:
    return tenth(_deep_size(args[1]))


def _first_fifth(args: Sequence[Any], _result: Any) -> int:
    return tenth(2 * size_of(args[0]))


def _result_fifth(_args: Sequence[Any], result: Any) -> int:
    return tenth(2 * size_of(result))


def _search(args: Sequence[Any], _result: Any) -> int:
    return tenth(1 + size_of(args[0])) * quarter(size_of(args[1]))


def _match(args: Sequence[Any], _result: Any) -> int:
    return tenth(1 + _deep_size(args[0])) * quarter(_deep_size(args[1]))


def _unit(_args: Sequence[Any], _result: Any) -> int:
    return 1


def _ip(args: Sequence[Any], result: Any) -> int:
    return 1 if args[0].__class__ is NetworkPrefix else _first_tenth(args, result)


def _contains_ip(args: Sequence[Any], _result: Any) -> int:
    return tenth(2 * size_of(args[0]))


def _contains_ip_text(args: Sequence[Any], _result: Any) -> int:
    return tenth(2 * size_of(args[0])) + tenth(size_of(args[1]))


def _contains_cidr(args: Sequence[Any], _result: Any) -> int:
    size = size_of(args[0])
    return tenth(2 * size) + tenth(size) + 1


def _contains_cidr_text(args: Sequence[Any], result: Any) -> int:
    return _contains_cidr(args, result) + tenth(size_of(args[1]))


def _validation(args: Sequence[Any], _result: Any) -> int:
    if not isinstance(args[0], NamedFormat):
        return 1
    return tenth(1 + size_of(args[1])) * quarter(args[0].regex_size)


def _sum_tenth(args: Sequence[Any], _result: Any) -> int:
    return tenth(_deep_size(args[0]) + _deep_size(args[1]))


def _contains_text(args: Sequence[Any], _result: Any) -> int:
    return tenth(_deep_size(args[0])) * tenth(_deep_size(args[1]))


def _second_size(args: Sequence[Any], _result: Any) -> int:
    return _deep_size(args[1])


def _new_list(_args: Sequence[Any], result: Any) -> int:
    return size_of(result) + 1 + _LIST_BASE


def _flattened(args: Sequence[Any], _result: Any) -> int:
    depth = 1
    if len(args) == 2:
        if args[1].__class__ is not int:
            raise InternalError("flatten: the depth is not an int")
        depth = args[1] if args[1] >= 0 else 1
    return size_of(args[0]) * depth + 1 + _LIST_BASE


def _self_compared(position: int) -> CallCost:
    """Every element against every other; strings cost a tenth more."""

    def cost(args: Sequence[Any], _result: Any) -> int:
        values = args[position]
        if not is_list(values):
            message = values.message if isinstance(values, CelError) else "not a list"
            raise InternalError(message)
        size = list_size(values)
        if size == 0:
            return 1 + _LIST_BASE
        is_text = values[0].__class__ in (str, bytes)
        return int(float(size * size) * (2.1 if is_text else 2.0)) + 1 + _LIST_BASE

    return cost


def _set_operation(factor: int) -> CallCost:
    def cost(args: Sequence[Any], _result: Any) -> int:
        return 1 + size_of(args[0]) * size_of(args[1]) * factor

    return cost


_BY_OVERLOAD: Final[dict[str, CallCost]] = {
    "list_slice": _new_list,
    "list_flatten": _flattened,
    "list_flatten_int": _flattened,
    "lists_range": _new_list,
    "list_reverse": _new_list,
    "list_distinct": _self_compared(0),
    **{f"list_{of.name}_sort": _self_compared(0) for of in COMPARABLE},
    **{f"list_{of.name}_sortByAssociatedKeys": _self_compared(1) for of in COMPARABLE},
    "list_sets_contains_list": _set_operation(1),
    "list_sets_intersects_list": _set_operation(1),
    "list_sets_equivalent_list": _set_operation(2),
    "cidr_contains_ip_string": _contains_ip_text,
    "cidr_contains_cidr_string": _contains_cidr_text,
    "cidr_ip": _unit,
}


def _selector(args: Sequence[Any], _result: Any) -> int:
    """Reading a selector: a list of requirements, one for every other letter at most."""
    size = size_of(args[1])
    return _LIST_BASE + tenth(size) + -(-size // 2) * (_LIST_BASE + _STRUCT_BASE)


def _authorization(_args: Sequence[Any], _result: Any) -> int:
    """So much that there are two of them at most in one expression."""
    return 350_000


_BY_FUNCTION: Final[dict[str, CallCost]] = {
    "check": _authorization,
    **dict.fromkeys(("fieldSelector", "labelSelector"), _selector),
    "jsonpatch.escapeKey": _first_tenth,
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"), _first_traversal),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim"), _first_tenth),
    **dict.fromkeys(("cidr", "isIP", "isCIDR"), _first_tenth),
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _first_tenth),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _first_fifth),
    "join": _result_fifth,
    **dict.fromkeys(("find", "findAll"), _search),
    "ip": _ip,
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "validate": _validation,
    "_==_": equality_cost,
}

_STANDARD: Final[dict[str, CallCost]] = {
    **dict.fromkeys(("starts_with_string", "ends_with_string"), _second_tenth),
    **dict.fromkeys(("string_to_bytes", "bytes_to_string", "strings_quote", "string_format"), _first_tenth_deep),
    "in_list": _second_size,
    **{
        f"{name}_{of}": _smaller
        for name in ("less", "greater", "less_equals", "greater_equals")
        for of in ("string", "bytes")
    },
    "not_equals": _smaller,
    **dict.fromkeys(("add_string", "add_bytes"), _sum_tenth),
    **dict.fromkeys(("matches", "matches_string"), _match),
    "contains_string": _contains_text,
}
