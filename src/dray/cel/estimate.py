"""The worst-case cost of an expression, from what is known of sizes before any device is seen.

Sizes come from literals, from the limits on a device (a driver name has at most 63 characters, and so on), and
from functions that say how large their result can be. The estimate decides whether API validation accepts an
expression, so it follows Kubernetes to the digit, including where that is generous.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from dray.cel.ast import (
    Call,
    Comprehension,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Select,
    is_bind,
)
from dray.cel.call_estimates import Argument, Path, estimate_call, scalar_size
from dray.cel.device_sizes import device_size
from dray.cel.ranges import MAX, UNKNOWN, Range, fixed
from dray.cel.types import Kind

__all__ = ["Sizes", "estimate_cost"]

_FREE: Final = Range(0, 0)
_ONE: Final = fixed(1)
_LIST_BASE: Final = fixed(10)
_MAP_BASE: Final = fixed(30)


Sizes: TypeAlias = Callable[[Path], Range | None]
"""How large what a path leads to can be; None if that is not known."""


def estimate_cost(root: Node, sizes: Sizes = device_size) -> int:
    """The most that the checked expression can cost, given how large the parts of its variables can be."""
    return _Estimator(sizes).cost(root).high


@dataclass(frozen=True, slots=True)
class _Entries:
    """The sizes of the keys (or indexes) and values in a list or map."""

    container: Kind
    key: Range
    value: Range


@dataclass(frozen=True, slots=True)
class _Local:
    """What is known of a local variable: where its value comes from, its size, and the sizes in it."""

    path: Path
    size: Range | None
    entries: _Entries | None


_Scope: TypeAlias = dict[str, _Local]


class _Estimator:
    def __init__(self, sizes: Sizes) -> None:
        self._part_size = sizes
        self._paths: dict[int, Path] = {}
        self._sizes: dict[int, Range] = {}
        self._entries: dict[int, _Entries] = {}
        self._scopes: list[_Scope] = []

    def cost(self, node: Node) -> Range:
        match node:
            case Call():
                return self._call(node)
            case Ident():
                return self._name(node, node.name)
            case Select():
                return self._select(node)
            case ListLiteral():
                return self._list(node)
            case MapLiteral():
                return self._map(node)
            case Comprehension():
                return self._bind(node) if is_bind(node) else self._comprehension(node)
            case _:
                return _FREE

    def _name(self, node: Node, name: str) -> Range:
        local = self._local(name)
        self._paths[node.id] = (name,) if local is None else local.path
        return _ONE

    def _select(self, node: Select) -> Range:
        if node.denotes is not None:
            return self._name(node, node.denotes.name)
        cost = self.cost(node.operand)
        if node.is_test:
            return cost  # has() itself is free
        if node.operand.type.kind in (Kind.MAP, Kind.STRUCT):
            cost = cost.plus(_ONE)
        self._paths[node.id] = (*self._path(node.operand), node.field)
        return cost

    def _list(self, node: ListLiteral) -> Range:
        cost = _LIST_BASE
        sizes = Range(MAX, 0) if node.elements else _FREE
        for element in node.elements:
            cost = cost.plus(self.cost(element))
            sizes = sizes.union(self._size_or_unknown(element))
        self._entries[node.id] = _Entries(Kind.LIST, _ONE, sizes)
        return cost

    def _map(self, node: MapLiteral) -> Range:
        cost = _MAP_BASE
        keys = values = Range(MAX, 0) if node.entries else _FREE
        for entry in node.entries:
            cost = cost.plus(self.cost(entry.key)).plus(self.cost(entry.value))
            keys = keys.union(self._size_or_unknown(entry.key))
            values = values.union(self._size_or_unknown(entry.value))
        self._entries[node.id] = _Entries(Kind.MAP, keys, values)
        return cost

    def _comprehension(self, node: Comprehension) -> Range:
        cost = self.cost(node.iter_range).plus(self.cost(node.accu_init))
        self._scopes.append({node.accu_var: self._describe(node.accu_init)})
        self._scopes.append(self._iteration_variables(node))
        one_round = self.cost(node.condition)
        one_round = self.cost(node.step).plus(one_round)
        self._scopes.pop()
        cost = cost.plus(self.cost(node.result))
        self._scopes.pop()
        rounds = self._size_or_unknown(node.iter_range)
        if isinstance(node.accu_init, Literal):
            self._set_size(node, self._size(node.accu_init))
        elif isinstance(node.accu_init, (ListLiteral, MapLiteral)):
            self._set_size(node, rounds)
            self._set_entries(node, self._entries_of(node.step))
        return cost.plus(rounds.times(one_round))

    def _iteration_variables(self, node: Comprehension) -> _Scope:
        entries = self._entries_of(node.iter_range)
        container = node.iter_range.type.kind if entries is None else entries.container
        path = self._path(node.iter_range)
        is_list = container is Kind.LIST
        key_size = None if entries is None else entries.key
        value_size = None if entries is None else entries.value
        values = _Local((*path, "@items" if is_list else "@values"), value_size, None)
        if node.iter_var2:
            keys = _Local((*path, "@indices" if is_list else "@keys"), key_size, None)
            return {node.iter_var: keys, node.iter_var2: values}
        return {node.iter_var: values if is_list else _Local((*path, "@keys"), key_size, None)}

    def _bind(self, node: Comprehension) -> Range:
        cost = self.cost(node.iter_range).plus(self.cost(node.accu_init))
        self._scopes.append({node.accu_var: self._describe(node.accu_init)})
        cost = cost.plus(self.cost(node.result))
        self._scopes.pop()
        self._set_size(node, self._size(node.result))
        self._set_entries(node, self._entries_of(node.result))
        return cost

    def _describe(self, node: Node) -> _Local:
        return _Local(self._path(node), self._size(node), self._entries_of(node))

    def _call(self, node: Call) -> Range:
        if node.function == "dyn":
            cost = self.cost(node.args[0]).plus(_ONE)
            self._set_size(node, self._size(node.args[0]))
            self._set_entries(node, self._entries_of(node.args[0]))
            return cost
        costs: list[Range] = []
        args: list[Argument] = []
        for arg in node.args:
            costs.append(self.cost(arg))
            args.append(self._argument(arg))
        total = _FREE
        target: Argument | None = None
        if node.target is not None:
            total = self.cost(node.target)
            target = self._argument(node.target)
        worst = Range(MAX, 0)
        result_size: Range | None = None
        for overload in node.overloads:
            cost, size = estimate_call(node.function, overload, target, args, costs)
            self._propagate_entries(node, overload)
            worst = worst.union(cost)
            if size is not None:
                result_size = size if result_size is None else result_size.union(size)
            if overload in ("index_list", "index_map"):
                entries = self._entries_of(node.args[0])
                result_size = None if entries is None else entries.value
                element = "@items" if overload == "index_list" else "@values"
                self._paths[node.id] = (*self._path(node.args[0]), element)
            if result_size is None:
                result_size = self._size(node)
        self._set_size(node, result_size)
        return total.plus(worst)

    def _propagate_entries(self, node: Call, overload: str) -> None:
        """What is in a concatenation or a conditional is what may be in either part."""
        if overload == "conditional":
            left, right = node.args[1], node.args[2]
        elif overload in ("add_list", "add_string", "add_bytes"):
            left, right = node.args
        else:
            return
        first, second = self._entries_of(left), self._entries_of(right)
        if first is not None and second is not None:
            joined = _Entries(first.container, first.key.union(second.key), first.value.union(second.value))
            self._set_entries(node, joined)

    def _argument(self, node: Node) -> Argument:
        return Argument(node, self._path(node), self._size(node), self._part_size)

    def _local(self, name: str) -> _Local | None:
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return None

    def _path(self, node: Node) -> Path:
        if isinstance(node, Ident):
            local = self._local(node.name)
            if local is not None:
                return local.path
        return self._paths.get(node.id, ())

    def _size_or_unknown(self, node: Node) -> Range:
        size = self._size(node)
        return UNKNOWN if size is None else size

    def _size(self, node: Node) -> Range | None:
        """The size of a value as far as it is known: computed, literal, of a device's part, of its type."""
        known = self._sizes.get(node.id)
        if known is not None:
            return known
        literal = _literal_size(node)
        if literal is not None:
            return literal
        of_part = self._part_size(self._path(node))
        if of_part is not None:
            self._sizes[node.id] = of_part
            return of_part
        of_type = scalar_size(node.type)
        if of_type is not None:
            return of_type
        local = self._local(node.name) if isinstance(node, Ident) else None
        return None if local is None else local.size

    def _entries_of(self, node: Node) -> _Entries | None:
        known = self._entries.get(node.id)
        if known is None and isinstance(node, Ident):
            local = self._local(node.name)
            return None if local is None else local.entries
        return known

    def _set_size(self, node: Node, size: Range | None) -> None:
        if size is not None:
            self._sizes[node.id] = size

    def _set_entries(self, node: Node, entries: _Entries | None) -> None:
        if entries is not None:
            self._entries[node.id] = entries


def _literal_size(node: Node) -> Range | None:
    match node:
        case Literal(value=str() | bytes()):
            return fixed(len(node.value))
        case Literal():
            return fixed(1)
        case ListLiteral():
            return fixed(len(node.elements))
        case MapLiteral():
            return fixed(len(node.entries))
        case _:
            return None
