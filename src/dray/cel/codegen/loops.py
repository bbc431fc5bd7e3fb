"""Code for ``all``, ``exists`` and ``exists_one`` over a list."""

from __future__ import annotations

from typing import Final, NamedTuple

from dray.cel.ast import ACCUMULATOR, Call, Comprehension, ListLiteral, Literal, Node
from dray.cel.codegen.attributes import Variable
from dray.cel.codegen.expressions import ExpressionWriter
from dray.cel.codegen.writer import Unsupported, Value

__all__ = ["LoopWriter"]

_MAX_RANGE: Final = 1_000_000
_MAX_LOOPS: Final = 16
"""Python takes 20 blocks within each other, and one of them is for lookups that fail."""


class _Quantifier(NamedTuple):
    """The costs of a quantifier: to test whether to go on, to combine with a predicate, and at the end."""

    decisive: bool
    test: int
    combine: int
    end: int


_QUANTIFIERS: Final = {
    "_&&_": _Quantifier(False, test=2, combine=1, end=1),
    "_||_": _Quantifier(True, test=3, combine=1, end=1),
}


class LoopWriter(ExpressionWriter):
    """Writes quantifiers as loops. Values of earlier rounds play no part as long as nothing fails."""

    def __init__(self) -> None:
        super().__init__()
        self._loops = 0

    def loop(self, node: Comprehension) -> Value:
        step = node.step
        if node.iter_var2 or node.accu_var != ACCUMULATOR or not isinstance(step, Call):
            raise Unsupported
        values = self._list(node.iter_range)
        self.settle()
        self.use_counter()
        if step.function in _QUANTIFIERS:
            return self._quantifier(node, values, _QUANTIFIERS[step.function], step.args[1])
        if step.function == "_?_:_" and isinstance(node.accu_init, Literal):
            return self._exactly_one(node, values, step.args[0])
        raise Unsupported

    def _list(self, node: Node) -> str:
        """A name for the list that is iterated."""
        if isinstance(node, ListLiteral):
            elements = [element.value for element in node.elements if isinstance(element, Literal)]
            if len(elements) < len(node.elements) or node.optionals:
                raise Unsupported
            return self.constant(elements)
        if isinstance(node, Call) and node.function == "lists.range" and isinstance(node.args[0], Literal):
            count = node.args[0].value
            if not isinstance(count, int) or not 0 <= count <= _MAX_RANGE:
                raise Unsupported
            self.pending += count + 11
            return self.constant(range(count))
        value = self.value(node)
        self.require(value, list)
        return value.code

    def _quantifier(self, node: Comprehension, values: str, kind: _Quantifier, predicate: Node) -> Value:
        result = self.new_name()
        self.line(f"{result} = {not kind.decisive}")
        self._begin(node, values)
        self.line(f"c += {kind.test}")
        self.line(f"if {result} is {kind.decisive}: break")
        self.pending = kind.combine
        self.line(f"{result} = {self.bool_value(predicate).code}")
        self._end()
        self.pending = kind.end
        return Value(result, bool)

    def _exactly_one(self, node: Comprehension, values: str, predicate: Node) -> Value:
        count = self.new_name()
        self.line(f"{count} = 0")
        self._begin(node, values)
        begin = len(self.lines)
        holds = self.bool_value(predicate)
        self.settle()
        if not any(line.startswith(f"{self._indent}c += ") for line in self.lines[begin:]):
            raise Unsupported  # some rounds may be free: the counter does not tell how long the loop takes
        self.line(f"if {holds.code}: {count} += 1; c += 2")
        self._end()
        self.pending = 2
        return self.name(f"{count} == 1", bool)

    def _begin(self, node: Comprehension, values: str) -> None:
        self._loops += 1
        if self._loops > _MAX_LOOPS:
            raise Unsupported
        item = self.new_name()
        self.line(f"for {item} in {values}:")
        self.indent()
        self.depth += 1
        self.scopes.append({ACCUMULATOR: Variable()})
        self.scopes.append({node.iter_var: Variable(value=Value(item, None))})

    def _end(self) -> None:
        self.settle()
        self.check_limit()
        self._loops -= 1
        self.scopes.pop()
        self.scopes.pop()
        self.depth -= 1
        self.dedent()
