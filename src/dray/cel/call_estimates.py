"""What a call can cost at most, from the sizes of its arguments, and how large its result can be.

Calls that are not listed cost 1 on top of their arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from dray.cel import types
from dray.cel.ast import Literal, Node
from dray.cel.device_sizes import Path, device_size
from dray.cel.library.lists import COMPARABLE
from dray.cel.ranges import MAX, UNKNOWN, Range, fixed, wrap
from dray.cel.types import Kind, Type

__all__ = ["Argument", "Path", "estimate_call", "scalar_size"]

_STRING_FACTOR: Final = 0.1
_REGEX_FACTOR: Final = 0.25
_ONE: Final = fixed(1)
_LIST_BASE: Final = fixed(10)
_ADDRESS: Final = Range(4, 16)
_MAX_FORMAT: Final = 64
_MAX_NAME_REGEX: Final = 128
_SCALARS: Final = (Kind.BOOL, Kind.DOUBLE, Kind.DURATION, Kind.INT, Kind.TIMESTAMP, Kind.UINT)


@dataclass(frozen=True, slots=True)
class Argument:
    """A receiver or argument: the expression, where its value comes from, and its size if that is known."""

    node: Node
    path: Path
    known_size: Range | None
    sizes: Callable[[Path], Range | None] = device_size
    """How large the parts of variables can be."""

    @property
    def size(self) -> Range:
        return UNKNOWN if self.known_size is None else self.known_size


Estimate: TypeAlias = tuple[Range, Range | None]
"""The cost of the call without that of its arguments, and the size of its result."""

_Estimator: TypeAlias = Callable[[Argument | None, Sequence[Argument]], Estimate | None]


def estimate_call(
    function: str,
    overload: str,
    target: Argument | None,
    args: Sequence[Argument],
    arg_costs: Sequence[Range],
) -> Estimate:
    """The cost of a call including its arguments, but not its receiver; and the size of its result."""
    if overload in ("logical_and", "logical_or"):
        left, right = arg_costs
        return Range(left.low, left.plus(right).high), None
    if overload == "conditional":
        condition, then, otherwise = arg_costs
        return condition.plus(then.union(otherwise)), args[1].size.union(args[2].size)
    total = Range(0, 0)
    for cost in arg_costs:
        total = total.plus(cost)
    for estimators, key in ((_BY_OVERLOAD, overload), (_BY_FUNCTION, function), (_STANDARD, overload)):
        estimator = estimators.get(key)
        estimate = None if estimator is None else estimator(target, args)
        if estimate is not None:
            return estimate[0].plus(total), estimate[1]
    return _ONE.plus(total), None


def scalar_size(of: Type) -> Range | None:
    """1 for types whose values all have the same size."""
    while of.is_optional:
        of = of.params[0]
    return _ONE if of.kind in _SCALARS else None


def _literal_count(arg: Argument, default: int) -> int:
    """The value of a literal int, at least 0."""
    node = arg.node
    if isinstance(node, Literal) and node.literal_type == types.INT:
        return max(int(node.value), 0)
    return default


def _new_list(factor: float, size: Range) -> Estimate:
    return size.scaled(factor).plus(_ONE).plus(_LIST_BASE), size


def _slice(target: Argument | None, args: Sequence[Argument]) -> Estimate | None:
    assert target is not None
    start = _literal_count(args[0], 0)
    end = _literal_count(args[1], target.size.high)
    return _new_list(1, fixed(wrap(end - start)))


def _range(_target: Argument | None, args: Sequence[Argument]) -> Estimate | None:
    return _new_list(1, fixed(_literal_count(args[0], MAX)))


def _reverse(target: Argument | None, _args: Sequence[Argument]) -> Estimate | None:
    assert target is not None
    return _new_list(1, target.size)


def _flatten(target: Argument | None, args: Sequence[Argument]) -> Estimate | None:
    assert target is not None
    depth = _literal_count(args[0], MAX) if args else 1
    return _new_list(float(depth), target.size)


def _pairs(compared: Argument | None, factor: float) -> Estimate | None:
    """Every element of a list with every other."""
    assert compared is not None
    return _new_list(factor, compared.size.times(compared.size))


def _compare_factor(of: Type) -> float:
    return 2.0 + _STRING_FACTOR if of in (types.STRING, types.BYTES) else 2.0


def _sort(of: Type) -> _Estimator:
    return lambda target, _args: _pairs(target, _compare_factor(of))


def _sort_by(of: Type) -> _Estimator:
    return lambda _target, args: _pairs(args[0], _compare_factor(of))


def _set_operation(factor: float) -> _Estimator:
    return lambda _target, args: (args[0].size.times(args[1].size).scaled(factor).plus(_ONE), None)


def _element(values: Argument) -> tuple[Type, Range] | None:
    """Type and size of the elements of something that has elements."""
    if not values.node.type.params:
        return None
    path = (*values.path, "@items") if values.path else ()
    size = values.sizes(path)
    return values.node.type.params[0], UNKNOWN if size is None else size


def _walk(function: str) -> _Estimator:
    """Functions that look at every element of a list, or at every character of a string."""

    def estimate(target: Argument | None, _args: Sequence[Argument]) -> Estimate | None:
        if target is None:
            return None
        element = _element(target)
        if element is None:
            if function == "includes":
                return target.size.times(_ONE), None
            return target.size.scaled(_STRING_FACTOR), None
        cost = _ONE
        if element[0].kind in (Kind.STRING, Kind.BYTES):
            cost = cost.plus(element[1].scaled(_STRING_FACTOR))
        return target.size.times(cost), None

    return estimate


def _scan_argument(_target: Argument | None, args: Sequence[Argument]) -> Estimate | None:
    return (args[0].size.scaled(_STRING_FACTOR), None) if args else None


def _url(_target: Argument | None, args: Sequence[Argument]) -> Estimate | None:
    return args[0].size.scaled(_STRING_FACTOR), args[0].size


def _transform(target: Argument | None, _args: Sequence[Argument]) -> Estimate | None:
    assert target is not None
    return target.size.scaled(_STRING_FACTOR), target.size


def _replace(target: Argument | None, args: Sequence[Argument]) -> Estimate | None:
    assert target is not None
    size, old, new = target.size, args[0].size, args[1].size
    longest, shortest = _longest_replacement(size, old, new), _shortest_replacement(size, old, new)
    count, retained = Range(shortest[0], longest[0]), Range(shortest[1], longest[1])
    return size.scaled(2 * _STRING_FACTOR), count.times(new).plus(retained)


def _longest_replacement(size: Range, old: Range, new: Range) -> tuple[int, int]:
    """How many replacements make the result longest, and how much of the text is kept."""
    if old.low == 0:
        return min(size.high + 1, MAX), size.high
    if new.high <= old.low:
        return 0, size.high
    return _divided(size.high, old.low), 0


def _shortest_replacement(size: Range, old: Range, new: Range) -> tuple[int, int]:
    if old.high == 0:
        return min(size.low + 1, MAX), size.low
    if old.high <= new.low:
        return 0, size.low
    return _divided(size.low, old.high), 0


def _divided(size: int, by: int) -> int:
    return min(math.ceil(float(size) / float(by)), MAX)


def _split(target: Argument | None, args: Sequence[Argument]) -> Estimate | None:
    assert target is not None
    most = target.size.high
    if len(args) > 1:
        node = args[1].node
        if isinstance(node, Literal) and node.literal_type == types.INT:
            most = wrap(node.value)
    return target.size.scaled(2 * _STRING_FACTOR), Range(0, most)


def _join(target: Argument | None, args: Sequence[Argument]) -> Estimate | None:
    assert target is not None
    size = Range(0, 0)
    count = target.size
    element = _element(target)
    if element is not None:
        size = count.times(element[1])
    if args:
        separators = Range(max(count.low - 1, 0), max(count.high - 1, 0))
        size = size.plus(args[0].size.times(separators))
    return size.scaled(_STRING_FACTOR), size


def _search(target: Argument | None, args: Sequence[Argument]) -> Estimate | None:
    assert target is not None
    return _regex_cost(target.size, args[0].size), Range(0, target.size.high)


def _regex_cost(text: Range, pattern: Range) -> Range:
    return text.plus(_ONE).scaled(_STRING_FACTOR).times(pattern.scaled(_REGEX_FACTOR))


def _unit(_target: Argument | None, _args: Sequence[Argument]) -> Estimate | None:
    return _ONE, None


def _is_canonical(_target: Argument | None, args: Sequence[Argument]) -> Estimate | None:
    return args[0].size.scaled(2 * _STRING_FACTOR), None


def _contains_ip(_target: Argument | None, _args: Sequence[Argument]) -> Estimate | None:
    return _ADDRESS.plus(_ADDRESS).scaled(_STRING_FACTOR), None


def _contains_cidr(_target: Argument | None, _args: Sequence[Argument]) -> Estimate | None:
    return _ADDRESS.plus(_ADDRESS).scaled(_STRING_FACTOR).plus(_ADDRESS.scaled(_STRING_FACTOR)).plus(_ONE), None


def _with_parsing(contains: _Estimator) -> _Estimator:
    """The same with an argument that is a string, which has to be parsed."""

    def estimate(target: Argument | None, args: Sequence[Argument]) -> Estimate | None:
        known = contains(target, args)
        assert known is not None
        return known[0].plus(args[0].size.scaled(_STRING_FACTOR)), None

    return estimate


def _validation(_target: Argument | None, args: Sequence[Argument]) -> Estimate | None:
    return args[0].size.scaled(_STRING_FACTOR).scaled(_MAX_NAME_REGEX * _REGEX_FACTOR), None


def _equality(_target: Argument | None, args: Sequence[Argument]) -> Estimate | None:
    """Equality of Kubernetes' own types; None for all others."""
    left, right = args[0].node.type, args[1].node.type
    if left.name != right.name:
        return None
    if left in (types.IP, types.CIDR, types.QUANTITY, types.SEMVER):
        return _ONE, None
    if left == types.FORMAT:
        return Range(1, _MAX_FORMAT).scaled(_STRING_FACTOR), None
    if left == types.URL:
        size = args[1].known_size or _ONE
        return Range(1, size.high).scaled(_STRING_FACTOR), None
    return None


def _smaller(_target: Argument | None, args: Sequence[Argument]) -> Estimate | None:
    most = min(args[0].size.high, args[1].size.high)
    return Range(1 if most > 0 else 0, most).scaled(_STRING_FACTOR), None


def _format(target: Argument | None, _args: Sequence[Argument]) -> Estimate | None:
    assert target is not None
    return target.size.scaled(_STRING_FACTOR), None


def _string_to_bytes(_target: Argument | None, args: Sequence[Argument]) -> Estimate | None:
    size = args[0].size
    return size.scaled(_STRING_FACTOR), Range(size.low, wrap(size.high * 4))


def _bytes_to_string(_target: Argument | None, args: Sequence[Argument]) -> Estimate | None:
    size = args[0].size
    return size.scaled(_STRING_FACTOR), Range(size.low // 4, size.high)


def _quote(_target: Argument | None, args: Sequence[Argument]) -> Estimate | None:
    size = args[0].size
    return size.scaled(_STRING_FACTOR), Range(wrap(size.low + 2), wrap(size.high * 2 + 2))


def _in_list(_target: Argument | None, args: Sequence[Argument]) -> Estimate | None:
    return args[1].size.scaled(1), None


def _matches(target: Argument | None, args: Sequence[Argument]) -> Estimate | None:
    text, pattern = (args[0], args[1]) if target is None else (target, args[0])
    return _regex_cost(text.size, pattern.size), None


def _contains(target: Argument | None, args: Sequence[Argument]) -> Estimate | None:
    assert target is not None
    return target.size.scaled(_STRING_FACTOR).times(args[0].size.scaled(_STRING_FACTOR)), None


def _add(factor: float | None) -> _Estimator:
    def estimate(_target: Argument | None, args: Sequence[Argument]) -> Estimate | None:
        size = args[0].size.plus(args[1].size)
        return (_ONE if factor is None else size.scaled(factor)), size

    return estimate


_BY_OVERLOAD: Final[dict[str, _Estimator]] = {
    "list_slice": _slice,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "lists_range": _range,
    "list_reverse": _reverse,
    "list_distinct": lambda target, _args: _pairs(target, 2.0),
    **{f"list_{of.name}_sort": _sort(of) for of in COMPARABLE},
    **{f"list_{of.name}_sortByAssociatedKeys": _sort_by(of) for of in COMPARABLE},
    "list_sets_contains_list": _set_operation(1),
    "list_sets_intersects_list": _set_operation(1),
    "list_sets_equivalent_list": _set_operation(2),
    "cidr_contains_ip_string": _with_parsing(_contains_ip),
    "cidr_contains_cidr_string": _with_parsing(_contains_cidr),
    "cidr_ip": _unit,
}

_BY_FUNCTION: Final[dict[str, _Estimator]] = {
    **{name: _walk(name) for name in ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes")},
    "url": _url,
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _transform),
    "replace": _replace,
    "split": _split,
    "join": _join,
    **dict.fromkeys(("find", "findAll"), _search),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "ip"), _scan_argument),
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _scan_argument),
    "ip.isCanonical": _is_canonical,
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "validate": _validation,
    "_==_": _equality,
}

_STANDARD: Final[dict[str, _Estimator]] = {
    "string_format": _format,
    "string_to_bytes": _string_to_bytes,
    "bytes_to_string": _bytes_to_string,
    "strings_quote": _quote,
    **dict.fromkeys(("starts_with_string", "ends_with_string"), _scan_argument),
    "in_list": _in_list,
    **dict.fromkeys(("matches", "matches_string"), _matches),
    "contains_string": _contains,
    "add_list": _add(None),
    **dict.fromkeys(("add_string", "add_bytes"), _add(_STRING_FACTOR)),
    **{
        f"{name}_{of}": _smaller
        for name in ("less", "greater", "less_equals", "greater_equals")
        for of in ("string", "bytes")
    },
    **dict.fromkeys(("equals", "not_equals"), _smaller),
}
