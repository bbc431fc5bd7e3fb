"""The syntax tree of an expression, after macros are expanded.

Nodes have an ``id`` that is unique in the tree, and the ``offset`` of the token that messages point at: the
operator, the dot of a selection, the opening parenthesis of a call. The checker fills in ``type`` and, for
calls, ``overloads``.
"""

from __future__ import annotations

from typing import Any, Final

from dray.cel import types
from dray.cel.types import Type

__all__ = [
    "ACCUMULATOR", "UNUSED",
    "Call", "Comprehension", "Ident", "ListLiteral", "Literal", "MapEntry", "MapLiteral", "Node", "Select",
    "StructLiteral", "children", "is_bind",
]  # fmt: skip

ACCUMULATOR: Final = "@result"
"""Name of the variable in which comprehensions gather their result; users cannot write it."""

UNUSED: Final = "#unused"
"""Iteration variable of a binding, which never iterates."""


class Node:
    """A node of the tree; one of the classes below."""

    __slots__ = ("id", "offset", "type")

    def __init__(self, id: int, offset: int) -> None:
        self.id = id
        self.offset = offset
        self.type: Type = types.ERROR


class Literal(Node):
    """A constant. Its static type is known from the start."""

    __slots__ = ("literal_type", "value")

    def __init__(self, id: int, offset: int, value: Any, literal_type: Type) -> None:
        super().__init__(id, offset)
        self.value = value
        self.literal_type = literal_type


class Ident(Node):
    """A name. ``denotes`` is set by the checker when the name is that of a type."""

    __slots__ = ("denotes", "is_global", "name")

    def __init__(self, id: int, offset: int, name: str) -> None:
        super().__init__(id, offset)
        self.name = name
        self.is_global = False
        self.denotes: Type | None = None


class Select(Node):
    """``operand.field``, or the test ``has(operand.field)``.

    A qualified type name such as ``net.IP`` is a selection too; then ``denotes`` is the type. So is a variable with a
    dot in its name; then ``variable`` is that name.
    """

    __slots__ = ("denotes", "field", "is_test", "operand", "variable")

    def __init__(self, id: int, offset: int, operand: Node, field: str, *, is_test: bool = False) -> None:
        super().__init__(id, offset)
        self.operand = operand
        self.field = field
        self.is_test = is_test
        self.denotes: Type | None = None
        self.variable = ""


class Call(Node):
    """A function or operator; ``target`` is the receiver of a member call."""

    __slots__ = ("args", "function", "overloads", "target")

    def __init__(self, id: int, offset: int, function: str, args: tuple[Node, ...], target: Node | None = None) -> None:
        super().__init__(id, offset)
        self.function = function
        self.args = args
        self.target = target
        self.overloads: tuple[str, ...] = ()

    @property
    def operands(self) -> tuple[Node, ...]:
        """Receiver and arguments."""
        return self.args if self.target is None else (self.target, *self.args)


class ListLiteral(Node):
    """``[a, ?b]``; ``optionals`` has the positions marked with a question mark."""

    __slots__ = ("elements", "optionals")

    def __init__(
        self, id: int, offset: int, elements: tuple[Node, ...], optionals: frozenset[int] = frozenset()
    ) -> None:
        super().__init__(id, offset)
        self.elements = elements
        self.optionals = optionals


class MapEntry:
    """``key: value`` or ``?key: value``."""

    __slots__ = ("is_optional", "key", "value")

    def __init__(self, key: Node, value: Node, *, is_optional: bool) -> None:
        self.key = key
        self.value = value
        self.is_optional = is_optional


class MapLiteral(Node):
    """``{a: b}``."""

    __slots__ = ("entries",)

    def __init__(self, id: int, offset: int, entries: tuple[MapEntry, ...]) -> None:
        super().__init__(id, offset)
        self.entries = entries


class StructLiteral(Node):
    """``Name{field: value, ?field: value}``; ``optionals`` has the positions marked with a question mark."""

    __slots__ = ("fields", "name", "optionals", "values")

    def __init__(
        self,
        id: int,
        offset: int,
        name: str,
        fields: tuple[str, ...],
        values: tuple[Node, ...],
        optionals: frozenset[int] = frozenset(),
    ) -> None:
        super().__init__(id, offset)
        self.name = name
        self.fields = fields
        self.values = values
        self.optionals = optionals


class Comprehension(Node):
    """A fold: while ``condition``, ``step`` computes the next accumulator; ``result`` ends it."""

    __slots__ = ("accu_init", "accu_var", "condition", "iter_range", "iter_var", "iter_var2", "result", "step")

    def __init__(
        self,
        id: int,
        offset: int,
        *,
        iter_range: Node,
        iter_var: str,
        iter_var2: str = "",
        accu_var: str = ACCUMULATOR,
        accu_init: Node,
        condition: Node,
        step: Node,
        result: Node,
    ) -> None:
        super().__init__(id, offset)
        self.iter_range = iter_range
        self.iter_var = iter_var
        self.iter_var2 = iter_var2
        self.accu_var = accu_var
        self.accu_init = accu_init
        self.condition = condition
        self.step = step
        self.result = result


def is_bind(node: Comprehension) -> bool:
    """Whether the fold only names a value, as ``cel.bind`` does."""
    return node.iter_var == UNUSED


def children(node: Node) -> tuple[Node, ...]:
    """The direct parts of a node."""
    match node:
        case Select():
            return (node.operand,)
        case Call():
            return node.operands
        case ListLiteral():
            return node.elements
        case MapLiteral():
            return tuple(part for entry in node.entries for part in (entry.key, entry.value))
        case StructLiteral():
            return node.values
        case Comprehension():
            return node.iter_range, node.accu_init, node.condition, node.step, node.result
        case _:
            return ()
