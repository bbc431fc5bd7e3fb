"""Macros: calls that the parser replaces by other expressions.

A macro is known by its name, its number of arguments and whether it is called on something. What it expands
to stands at the position of the call's opening parenthesis. The shapes of the expansions decide what an
expression costs, so they are part of the language.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from dray.cel import types
from dray.cel.ast import (
    ACCUMULATOR,
    UNUSED,
    Call,
    Comprehension,
    Ident,
    ListLiteral,
    Literal,
    MapEntry,
    MapLiteral,
    Node,
    Select,
    StructLiteral,
)

__all__ = ["MacroError", "NodeFactory", "expand", "qualified_name"]

_SORT_INPUT: Final = "@__sortBy_input__"
_MAX_NODES: Final = 5_000
_LEGACY_ACCUMULATOR: Final = "__result__"


class MacroError(ValueError):
    """A macro call that cannot be expanded; the message is about the text at ``offset``."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


class NodeFactory:
    """Hands out node ids, up to the number of nodes that a tree may have.

    ``optMap`` copies what it is called on, so a short chain of it could stand for a tree without end.
    """

    def __init__(self) -> None:
        self.last = 0

    def new_id(self) -> int:
        self.last += 1
        return self.last


class _Builder:
    """Builds the nodes of one expansion, all at the position of the macro call."""

    def __init__(self, factory: NodeFactory, offset: int) -> None:
        self._factory = factory
        self._offset = offset

    def literal(self, value: Any, of: types.Type) -> Literal:
        return Literal(self._factory.new_id(), self._offset, value, of)

    def ident(self, name: str) -> Ident:
        return Ident(self._factory.new_id(), self._offset, name)

    def accumulator(self) -> Ident:
        return self.ident(ACCUMULATOR)

    def call(self, function: str, *args: Node, target: Node | None = None) -> Call:
        return Call(self._factory.new_id(), self._offset, function, args, target)

    def list(self, *elements: Node) -> ListLiteral:
        return ListLiteral(self._factory.new_id(), self._offset, elements)

    def map(self) -> MapLiteral:
        return MapLiteral(self._factory.new_id(), self._offset, ())

    def test(self, operand: Node, field: str) -> Select:
        return Select(self._factory.new_id(), self._offset, operand, field, is_test=True)

    def fold(
        self, over: Node, variables: tuple[str, ...], init: Node, condition: Node, step: Node, result: Node
    ) -> Comprehension:
        return Comprehension(
            self._factory.new_id(),
            self._offset,
            iter_range=over,
            iter_var=variables[0],
            iter_var2=variables[1] if len(variables) > 1 else "",
            accu_init=init,
            condition=condition,
            step=step,
            result=result,
        )

    def bind(self, name: str, value: Node, result: Node) -> Comprehension:
        return Comprehension(
            self._factory.new_id(),
            self._offset,
            iter_range=self.list(),
            iter_var=UNUSED,
            accu_var=name,
            accu_init=value,
            condition=self.literal(False, types.BOOL),
            step=self.ident(name),
            result=result,
        )

    def copy(self, node: Node) -> Node:
        """The same expression again, with ids of its own."""
        id, offset = self._factory.new_id(), node.offset
        if id > _MAX_NODES:
            raise MacroError("the expression is too large once its macros are expanded", self._offset)
        match node:
            case Literal():
                return Literal(id, offset, node.value, node.literal_type)
            case Ident():
                return Ident(id, offset, node.name)
            case Select():
                return Select(id, offset, self.copy(node.operand), node.field, is_test=node.is_test)
            case Call():
                target = None if node.target is None else self.copy(node.target)
                return Call(id, offset, node.function, tuple(map(self.copy, node.args)), target)
            case ListLiteral():
                return ListLiteral(id, offset, tuple(map(self.copy, node.elements)), node.optionals)
            case MapLiteral():
                entries = (
                    MapEntry(self.copy(entry.key), self.copy(entry.value), is_optional=entry.is_optional)
                    for entry in node.entries
                )
                return MapLiteral(id, offset, tuple(entries))
            case StructLiteral():
                return StructLiteral(
                    id, offset, node.name, node.fields, tuple(map(self.copy, node.values)), node.optionals
                )
            case Comprehension():
                return Comprehension(
                    id,
                    offset,
                    iter_range=self.copy(node.iter_range),
                    iter_var=node.iter_var,
                    iter_var2=node.iter_var2,
                    accu_var=node.accu_var,
                    accu_init=self.copy(node.accu_init),
                    condition=self.copy(node.condition),
                    step=self.copy(node.step),
                    result=self.copy(node.result),
                )
            case _:
                raise AssertionError(f"unknown node {node!r}")


def expand(
    factory: NodeFactory, offset: int, function: str, target: Node | None, args: tuple[Node, ...]
) -> Node | None:
    """What the call stands for, or None if it is no macro call. Raises MacroError."""
    macro = _MACROS.get((function, len(args), target is not None))
    if macro is None:
        return None
    return macro(_Builder(factory, offset), target or args[0], args)


def qualified_name(node: Node) -> str | None:
    """``a.b.c`` if the node is nothing but names and dots."""
    names: list[str] = []
    while isinstance(node, Select) and not node.is_test:
        names.append(node.field)
        node = node.operand
    if not isinstance(node, Ident):
        return None
    return ".".join((node.name, *reversed(names)))


def _variable(arg: Node, message: str = "argument must be a simple name") -> str:
    if not isinstance(arg, Ident):
        raise MacroError(message, arg.offset)
    if arg.name in (ACCUMULATOR, _LEGACY_ACCUMULATOR):
        raise MacroError(f"the variable name {arg.name!r} is taken", arg.offset)
    return arg.name


def _variables(args: tuple[Node, ...], count: int) -> tuple[str, ...]:
    names = tuple(_variable(arg) for arg in args[:count])
    if len(set(names)) < count:
        raise MacroError(f"duplicate variable name: {names[0]}", args[1].offset)
    return names


def _has(build: _Builder, _target: Node, args: tuple[Node, ...]) -> Node:
    if not isinstance(args[0], Select):
        raise MacroError("invalid argument to has(): it must be a field selection, as in has(a.b)", args[0].offset)
    return build.test(args[0].operand, args[0].field)


def _all(count: int) -> _Macro:
    def expand_all(build: _Builder, target: Node, args: tuple[Node, ...]) -> Node:
        return build.fold(
            target,
            _variables(args, count),
            init=build.literal(True, types.BOOL),
            condition=build.call("@not_strictly_false", build.accumulator()),
            step=build.call("_&&_", build.accumulator(), args[count]),
            result=build.accumulator(),
        )

    return expand_all


def _exists(count: int) -> _Macro:
    def expand_exists(build: _Builder, target: Node, args: tuple[Node, ...]) -> Node:
        return build.fold(
            target,
            _variables(args, count),
            init=build.literal(False, types.BOOL),
            condition=build.call("@not_strictly_false", build.call("!_", build.accumulator())),
            step=build.call("_||_", build.accumulator(), args[count]),
            result=build.accumulator(),
        )

    return expand_exists


def _exists_one(count: int) -> _Macro:
    def expand_exists_one(build: _Builder, target: Node, args: tuple[Node, ...]) -> Node:
        one_more = build.call("_+_", build.accumulator(), build.literal(1, types.INT))
        return build.fold(
            target,
            _variables(args, count),
            init=build.literal(0, types.INT),
            condition=build.literal(True, types.BOOL),
            step=build.call("_?_:_", args[count], one_more, build.accumulator()),
            result=build.call("_==_", build.accumulator(), build.literal(1, types.INT)),
        )

    return expand_exists_one


def _gather(
    build: _Builder, over: Node, names: tuple[str, ...], init: Node, step: Node, condition: Node | None
) -> Node:
    """A fold over everything that adds ``step`` where the condition holds."""
    if condition is not None:
        step = build.call("_?_:_", condition, step, build.accumulator())
    return build.fold(over, names, init, build.literal(True, types.BOOL), step, build.accumulator())


def _map(build: _Builder, target: Node, args: tuple[Node, ...]) -> Node:
    name = _variable(args[0], "argument is not an identifier")
    step = build.call("_+_", build.accumulator(), build.list(args[-1]))
    return _gather(build, target, (name,), build.list(), step, args[1] if len(args) == 3 else None)


def _filter(build: _Builder, target: Node, args: tuple[Node, ...]) -> Node:
    name = _variable(args[0], "argument is not an identifier")
    step = build.call("_+_", build.accumulator(), build.list(args[0]))
    return _gather(build, target, (name,), build.list(), step, args[1])


def _transform_list(build: _Builder, target: Node, args: tuple[Node, ...]) -> Node:
    step = build.call("_+_", build.accumulator(), build.list(args[-1]))
    condition = args[2] if len(args) == 4 else None
    return _gather(build, target, _variables(args, 2), build.list(), step, condition)


def _transform_map(build: _Builder, target: Node, args: tuple[Node, ...]) -> Node:
    names = _variables(args, 2)
    step = build.call("cel.@mapInsert", build.accumulator(), build.ident(names[0]), args[-1])
    return _gather(build, target, names, build.map(), step, args[2] if len(args) == 4 else None)


def _transform_map_entry(build: _Builder, target: Node, args: tuple[Node, ...]) -> Node:
    step = build.call("cel.@mapInsert", build.accumulator(), args[-1])
    condition = args[2] if len(args) == 4 else None
    return _gather(build, target, _variables(args, 2), build.map(), step, condition)


def _bind(build: _Builder, target: Node, args: tuple[Node, ...]) -> Node | None:
    if not (isinstance(target, Ident) and target.name == "cel"):
        return None
    if not isinstance(args[0], Ident):
        raise MacroError("the variable of cel.bind() must be a simple name", args[0].offset)
    return build.bind(args[0].name, args[1], args[2])


def _opt_map(build: _Builder, target: Node, args: tuple[Node, ...]) -> Node:
    mapped = build.call("optional.of", _bound_value(build, target, args, "optMap"))
    return _if_present(build, target, mapped)


def _opt_flat_map(build: _Builder, target: Node, args: tuple[Node, ...]) -> Node:
    return _if_present(build, target, _bound_value(build, target, args, "optFlatMap"))


def _bound_value(build: _Builder, target: Node, args: tuple[Node, ...], macro: str) -> Node:
    if not isinstance(args[0], Ident):
        raise MacroError(f"the variable of {macro}() must be a simple name", args[0].offset)
    return build.bind(args[0].name, build.call("value", target=build.copy(target)), args[1])


def _if_present(build: _Builder, target: Node, then: Node) -> Node:
    return build.call("_?_:_", build.call("hasValue", target=target), then, build.call("optional.none"))


def _sort_by(build: _Builder, target: Node, args: tuple[Node, ...]) -> Node:
    if isinstance(target, (Literal, MapLiteral, StructLiteral)):
        raise MacroError("sortBy can only be applied to a list", target.offset)
    keys = _map(build, build.ident(_SORT_INPUT), args)
    call = build.call("@sortByAssociatedKeys", keys, target=build.ident(_SORT_INPUT))
    return build.bind(_SORT_INPUT, target, call)


_Macro: TypeAlias = Callable[[_Builder, Node, tuple[Node, ...]], Node | None]

_MACROS: Final[dict[tuple[str, int, bool], _Macro]] = {
    # By name, number of arguments and whether there is a target. With one variable there is `exists_one` alone: in
    # Kubernetes the other spelling belongs to the comprehensions of two variables.
    ("has", 1, False): _has,
    ("all", 2, True): _all(1),
    ("all", 3, True): _all(2),
    ("exists", 2, True): _exists(1),
    ("exists", 3, True): _exists(2),
    ("exists_one", 2, True): _exists_one(1),
    ("exists_one", 3, True): _exists_one(2),
    ("existsOne", 3, True): _exists_one(2),
    ("map", 2, True): _map,
    ("map", 3, True): _map,
    ("filter", 2, True): _filter,
    ("transformList", 3, True): _transform_list,
    ("transformList", 4, True): _transform_list,
    ("transformMap", 3, True): _transform_map,
    ("transformMap", 4, True): _transform_map,
    ("transformMapEntry", 3, True): _transform_map_entry,
    ("transformMapEntry", 4, True): _transform_map_entry,
    ("bind", 3, True): _bind,
    ("optMap", 2, True): _opt_map,
    ("optFlatMap", 2, True): _opt_flat_map,
    ("sortBy", 2, True): _sort_by,
}
