"""Which parts of a device an expression looks at, as far as that shows in its text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from dray.cel import ast
from dray.cel.ast import Call, Comprehension, Ident, Node, Select, is_bind

__all__ = ["Read", "Reads", "find_reads"]

Kind: TypeAlias = Literal["attribute", "capacity"]
Read: TypeAlias = tuple[Kind, str, str]
"""Kind, domain and name of a value."""

_KINDS: Final[dict[str, Kind]] = {"attributes": "attribute", "capacity": "capacity"}


@dataclass(frozen=True, slots=True)
class Reads:
    """What an expression depends on.

    Two devices that agree in all of this give the same result, provided that neither has a value that cannot be
    converted at all (``DeviceView.error``). ``everything`` is set where the names do not show, for example when
    the expression iterates over all attributes; then the rest says nothing.
    """

    values: frozenset[Read]
    driver: bool
    allow_multiple_allocations: bool
    everything: bool


def find_reads(root: Node) -> Reads:
    """What a checked expression reads."""
    finder = _Finder()
    finder.visit(root)
    return Reads(frozenset(finder.values), finder.driver, finder.allow_multiple_allocations, finder.everything)


# What a node stands for: the device, one of its two maps, or one domain of a map.
_Part: TypeAlias = tuple[()] | tuple[Kind] | tuple[Kind, str]


class _Finder:
    def __init__(self) -> None:
        self.values: set[Read] = set()
        self.driver = False
        self.allow_multiple_allocations = False
        self.everything = False
        self._scopes: list[dict[str, _Part | None]] = []

    def visit(self, node: Node) -> None:
        """Note what the value of the node depends on."""
        part = self._part(node)
        if part is not None:
            self.everything = True  # a whole map is used as a value
        elif not self._visit_lookup(node):
            self._visit_children(node)

    def _visit_lookup(self, node: Node) -> bool:
        """Whether the node looks up one value of the device; that is noted."""
        operand, key = _lookup(node)
        if operand is None:
            return False
        part = self._part(operand)
        if part == ():
            self.driver = self.driver or key == "driver"
            self.allow_multiple_allocations = self.allow_multiple_allocations or key == "allowMultipleAllocations"
            return True
        if part is not None and len(part) == 2 and key is not None:
            self.values.add((part[0], part[1], key))
            return True
        return False

    def _visit_children(self, node: Node) -> None:
        if not isinstance(node, Comprehension):
            for child in ast.children(node):
                self.visit(child)
            return
        alias = self._part(node.accu_init) if is_bind(node) else None
        if alias is None:
            self.visit(node.accu_init)
        self.visit(node.iter_range)
        self._scopes.append({node.accu_var: alias})
        self._scopes.append({node.iter_var: None, node.iter_var2: None})
        if not is_bind(node):
            self.visit(node.condition)
            self.visit(node.step)
        self._scopes.pop()
        self.visit(node.result)
        self._scopes.pop()

    def _part(self, node: Node) -> _Part | None:
        """Which part of the device a node stands for; None if it is none or a single value."""
        if isinstance(node, Ident):
            return self._named_part(node)
        if isinstance(node, Select) and node.is_test:
            return None
        operand, key = _lookup(node)
        if operand is None or key is None or (isinstance(node, Call) and node.function == "@in"):
            return None
        part = self._part(operand)
        if part == ():
            return (_KINDS[key],) if key in _KINDS else None
        return (part[0], key) if part is not None and len(part) == 1 else None

    def _named_part(self, node: Ident) -> _Part | None:
        if not node.is_global:
            for scope in reversed(self._scopes):
                if node.name in scope:
                    return scope[node.name]
        return () if node.denotes is None else None


def _lookup(node: Node) -> tuple[Node | None, str | None]:
    """The container and the constant key of a selection, index or ``in``."""
    match node:
        case Select(denotes=None):
            return node.operand, node.field
        case Call(function="_[_]" | "_[?_]" | "_?._", args=(operand, ast.Literal(value=str() as key))):
            return operand, key
        case Call(function="@in", args=(ast.Literal(value=str() as key), container)):
            return container, key
        case _:
            return None, None
