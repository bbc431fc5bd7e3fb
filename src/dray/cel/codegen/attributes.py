"""Code for what an expression reads of a device, and for bound variables."""

from __future__ import annotations

from typing import NamedTuple

from dray.api.quantity import Quantity
from dray.cel import types
from dray.cel.ast import Call, Ident, Literal, Node, Select
from dray.cel.codegen.writer import StatementWriter, Unsupported, Value
from dray.cel.values import MISSING

__all__ = ["AttributeWriter", "Domain", "Variable", "container"]


class Domain(NamedTuple):
    """The attributes or capacities of one domain, as Python expressions for their dictionary.

    ``strict`` raises KeyError if the domain does not exist, ``lenient`` is an empty dictionary then. ``cost`` is
    that of the selections; the 1 for the whole chain is added by whoever ends it.
    """

    strict: str
    lenient: str
    is_capacity: bool
    cost: int


class Variable:
    """A bound variable, which is computed where it is first used, or one that has its value already."""

    def __init__(self, init: Node | None = None, value: Value | None = None) -> None:
        self.init = init
        self.value: Value | Domain | None = value


class AttributeWriter(StatementWriter):
    """Writes lookups. ``depth`` counts the branches and loops around the current line."""

    def __init__(self) -> None:
        super().__init__()
        self.depth = 0
        self.scopes: list[dict[str, Variable]] = []

    def value(self, node: Node) -> Value:  # noqa: ARG002 - what subclasses need
        """Write the computation of any value."""
        raise Unsupported

    def attribute(self, node: Node) -> Value:
        """A field of the device, an attribute, a capacity, a test for one, or a bound variable."""
        if isinstance(node, Ident):
            value = self._variable_value(node)
            if not isinstance(value, Value):
                raise Unsupported
            self.pending += 1
            return value._replace(is_attribute=True)
        operand, key = _selection(node)
        is_test = isinstance(node, Select) and node.is_test
        if _is_device(operand):
            return self._device_field(key, is_test)
        domain = self.domain(operand)
        self.pending += domain.cost + 1
        if is_test:
            return self.name(f"{key!r} in {domain.lenient}", bool)
        self.pending += 1
        of = Quantity if domain.is_capacity else None
        return self.name(f"{domain.strict}[{key!r}]", of, is_attribute=True)

    def _device_field(self, key: str, is_test: bool) -> Value:
        if is_test:
            raise Unsupported
        self.pending += 2
        if key == "driver":
            return self.name("view.driver", str, is_attribute=True)
        if key == "allowMultipleAllocations":
            return self.name("view.allow_multiple_allocations", bool, is_attribute=True)
        raise Unsupported

    def domain(self, node: Node) -> Domain:
        """``device.attributes["d"]`` or ``device.capacity["d"]``, or a variable that stands for one."""
        if isinstance(node, Ident):
            value = self._variable_value(node)
            if not isinstance(value, Domain):
                raise Unsupported
            return value
        operand, key = _selection(node)
        kind = container(operand)
        if isinstance(node, Select) and node.is_test:
            raise Unsupported
        strict, lenient = f"view.{kind}[{key!r}]", f"view.{kind}.get({key!r}, EMPTY)"
        return Domain(strict, lenient, kind == "capacity", 2)

    def optional(self, node: Node) -> str:
        """A name for ``domain.?name``, MISSING if it is not there; the 1 if it is there is still to be counted."""
        if not isinstance(node, Call) or node.function != "_?._":
            raise Unsupported
        domain = self.domain(node.args[0])
        field = node.args[1]
        assert isinstance(field, Literal)
        self.pending += domain.cost + 1
        found = self.name(f"{domain.lenient}.get({field.value!r}, MISSING)", None)
        self.use_counter()
        return found.code

    def _variable_value(self, node: Ident) -> Value | Domain:
        """The value of a variable. Only the first use pays for it, so that one must be sure to come first."""
        variable = None if node.is_global else self._find(node.name)
        if variable is None:
            raise Unsupported
        if variable.value is None:
            if self.depth or variable.init is None:
                raise Unsupported
            variable.value = self._initial(variable.init)
        return variable.value

    def _find(self, name: str) -> Variable | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def _initial(self, init: Node) -> Value | Domain:
        try:
            domain = self.domain(init)
        except Unsupported:
            return self.value(init)._replace(constant=MISSING)
        self.pending += domain.cost + 1
        name = self.name(domain.strict, None).code
        return Domain(name, name, domain.is_capacity, 0)


def _is_device(node: Node) -> bool:
    return isinstance(node, Ident) and node.is_global and node.type == types.DEVICE


def _selection(node: Node) -> tuple[Node, str]:
    """Operand and key of a selection or an index with a constant string."""
    if isinstance(node, Select) and node.denotes is None:
        return node.operand, node.field
    if isinstance(node, Call) and node.function == "_[_]":
        operand, key = node.args
        if isinstance(key, Literal) and isinstance(key.value, str):
            return operand, key.value
    raise Unsupported


def container(node: Node) -> str:
    """``attributes`` or ``capacity``, if the node is that field of the device; otherwise raises Unsupported."""
    if not isinstance(node, Select) or node.is_test or not _is_device(node.operand):
        raise Unsupported
    if node.field not in ("attributes", "capacity"):
        raise Unsupported
    return node.field
