"""Code for operators and functions."""

from __future__ import annotations

from typing import Final

from dray.api.quantity import Quantity
from dray.api.semver import Semver
from dray.cel.ast import Call, Comprehension, Ident, ListLiteral, Literal, Node, Select, is_bind
from dray.cel.call_costs import call_cost, quarter, tenth
from dray.cel.codegen.attributes import AttributeWriter, Variable, container
from dray.cel.codegen.writer import Unsupported, Value
from dray.cel.environment import FUNCTIONS
from dray.cel.library.regex import compile_regex
from dray.cel.values import INT_MAX, MISSING, CelError

__all__ = ["ExpressionWriter", "terms"]

_ORDER: Final = {"_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">="}
_PLAIN: Final = (str, int, bool)


class ExpressionWriter(AttributeWriter):
    """Writes the computation of values. An expression that is not supported raises Unsupported."""

    def value(self, node: Node) -> Value:
        match node:
            case Literal() if node.value.__class__ in _PLAIN:
                return Value(repr(node.value), node.value.__class__, constant=node.value)
            case Ident() | Select():
                return self.attribute(node)
            case Call():
                return self._call(node)
            case Comprehension() if is_bind(node):
                return self._binding(node)
            case Comprehension():
                return self.loop(node)
            case _:
                raise Unsupported

    def loop(self, node: Comprehension) -> Value:  # noqa: ARG002 - what subclasses need
        """Write a comprehension."""
        raise Unsupported

    def bool_value(self, node: Node) -> Value:
        """A value that is a bool."""
        value = self.value(node)
        self.require(value, bool)
        return value

    def text_comparison(self, node: Node) -> tuple[Value, str, bool] | None:
        """The parts of ``x == "text"``, with the value computed and known to be a string."""
        if not isinstance(node, Call) or node.function not in ("_==_", "_!=_"):
            return None
        left, right = node.args
        if isinstance(left, Literal) and not isinstance(right, Literal):
            left, right = right, left
        if not isinstance(right, Literal) or not isinstance(right.value, str):
            return None
        value = self.value(left)
        self.require(value, str)
        return value, right.value, node.function == "_==_"

    def _binding(self, node: Comprehension) -> Value:
        self.scopes.append({node.accu_var: Variable(node.accu_init)})
        value = self.value(node.result)
        self.scopes.pop()
        return value._replace(is_attribute=False)

    def _call(self, node: Call) -> Value:
        match node.function:
            case "_&&_" | "_||_":
                return self._logical(node, decisive=node.function == "_||_")
            case "!_":
                value = self.bool_value(node.args[0])
                self.pending += 1
                return Value(f"(not {value.code})", bool)
            case "_?_:_":
                return self._conditional(node)
            case "_==_" | "_!=_":
                return self._equality(node)
            case "_<_" | "_<=_" | "_>_" | "_>=_":
                return self._comparison(node)
            case "@in":
                return self._membership(node)
            case "_[_]":
                return self.attribute(node)
            case "orValue":
                return self._or_value(node)
            case "hasValue":
                return self._has_value(node)
            case "quantity" | "semver":
                return self._constant_object(node)
            case "compareTo" | "isGreaterThan" | "isLessThan":
                return self._object_comparison(node)
            case "major" | "minor" | "patch":
                return self._version_part(node)
            case "startsWith" | "endsWith" | "contains" | "matches":
                return self._text_test(node)
            case _:
                raise Unsupported

    def _logical(self, node: Call, *, decisive: bool) -> Value:
        result = self.new_name()
        chain = terms(node, node.function)
        for index, term in enumerate(chain):
            value = self.bool_value(term)
            self.line(f"{result} = {value.code}")
            self.settle()
            if index + 1 < len(chain):
                self.line(f"if {'not ' if decisive else ''}{result}:")
                self.indent()
                self.depth += 1
        self.depth -= len(chain) - 1
        self.dedent(len(chain) - 1)
        return Value(result, bool)

    def _conditional(self, node: Call) -> Value:
        condition = self.bool_value(node.args[0])
        self.settle()
        result = self.new_name()
        classes = []
        self.depth += 1
        for head, branch in ((f"if {condition.code}:", node.args[1]), ("else:", node.args[2])):
            self.line(head)
            self.indent()
            value = self.value(branch)
            self.pending -= value.is_attribute
            self.line(f"{result} = {value.code}")
            self.settle()
            self.dedent()
            classes.append(value.of)
        self.depth -= 1
        return Value(result, classes[0] if classes[0] is classes[1] else None)

    def _equality(self, node: Call) -> Value:
        text = self.text_comparison(node)
        operator = node.function.strip("_")
        if text is not None:
            value, literal, _ = text
            self.count(f"-(-min(len({value.code}), {len(literal)}) // 10)")
            return self.name(f"{value.code} {operator} {literal!r}", bool)
        left, right = (self.value(arg) for arg in node.args)
        if right.of is None:
            left, right = right, left
        if right.of is int or right.of is bool:
            self.require(left, right.of)
            self.pending += 1
        elif left.of in (None, str) and right.of in (None, str):
            self._same_plain_class(left.code, right.code)
        else:
            raise Unsupported
        return self.name(f"{left.code} {operator} {right.code}", bool)

    def _same_plain_class(self, left: str, right: str) -> None:
        """Make sure that both values are strings, ints or bools, and count what comparing them costs."""
        self.use_counter()
        self.line(f"if {left}.__class__ is not {right}.__class__: return slow(view)")
        self.line(f"if {left}.__class__ is str: c += -(-min(len({left}), len({right})) // 10)")
        self.line(f"elif {left}.__class__ is int or {left}.__class__ is bool: c += 1")
        self.line("else: return slow(view)")

    def _comparison(self, node: Call) -> Value:
        overload = node.overloads[0] if len(node.overloads) == 1 else ""
        if call_cost(node.function, overload) is not None:
            raise Unsupported
        left, right = (self.value(arg) for arg in node.args)
        self.require(left, int)
        self.require(right, int)
        self.pending += 1
        return self.name(f"{left.code} {_ORDER[node.function]} {right.code}", bool)

    def _membership(self, node: Call) -> Value:
        wanted, holder = node.args
        if isinstance(holder, ListLiteral):
            return self._list_membership(wanted, holder)
        if not isinstance(wanted, Literal) or not isinstance(wanted.value, str) or node.overloads != ("in_map",):
            raise Unsupported
        try:
            kind = container(holder)
        except Unsupported:
            domain = self.domain(holder)
            self.pending += domain.cost + 2
            return self.name(f"{wanted.value!r} in {domain.lenient}", bool)
        self.pending += 3
        return self.name(f"{wanted.value!r} in view.{kind}", bool)

    def _list_membership(self, wanted: Node, holder: ListLiteral) -> Value:
        members = [element.value for element in holder.elements if isinstance(element, Literal)]
        classes = {member.__class__ for member in members}
        if len(members) < len(holder.elements) or len(classes) != 1 or not classes <= {str, int}:
            raise Unsupported
        value = self.value(wanted)
        self.require(value, classes.pop())
        return self.name(f"{value.code} in {self.constant(frozenset(members))}", bool)

    def _or_value(self, node: Call) -> Value:
        assert node.target is not None
        default = node.args[0]
        if not isinstance(default, Literal) or default.value.__class__ not in _PLAIN:
            raise Unsupported
        found = self.optional(node.target)
        self.line(f"if {found} is MISSING: {found} = {default.value!r}")
        self.line("else: c += 1")
        return Value(found, None)

    def _has_value(self, node: Call) -> Value:
        assert node.target is not None
        found = self.optional(node.target)
        self.pending += 1
        self.line(f"if {found} is not MISSING: c += 1")
        return self.name(f"{found} is not MISSING", bool)

    def _constant_object(self, node: Call) -> Value:
        """``quantity("…")`` and ``semver("…")`` of a literal: converted once, charged every time."""
        if len(node.args) != 1 or not isinstance(node.args[0], Literal):
            raise Unsupported
        convert, _ = FUNCTIONS[node.function].bind(node.overloads[0])
        value = convert(node.args[0].value)
        if isinstance(value, CelError):
            raise Unsupported
        self.pending += tenth(len(node.args[0].value))
        return Value(self.constant(value), value.__class__, constant=value)

    def _object_comparison(self, node: Call) -> Value:
        """``compareTo`` and the like with a constant quantity or version on the right."""
        assert node.target is not None
        left = self.value(node.target)
        right = self.value(node.args[0])
        if right.constant is MISSING or right.of not in (Quantity, Semver):
            raise Unsupported
        self.require(left, right.of)
        self.pending += 1
        if right.of is Quantity:
            mine, theirs = f"{left.code}.nanos", repr(right.constant.nanos)
            order = f"({mine} > {theirs}) - ({mine} < {theirs})"
        else:
            mine, theirs = f"{left.code}.compare({right.code})", "0"
            order = mine
        if node.function == "compareTo":
            return self.name(order, int)
        return self.name(f"{mine} {'>' if node.function == 'isGreaterThan' else '<'} {theirs}", bool)

    def _version_part(self, node: Call) -> Value:
        assert node.target is not None
        version = self.value(node.target)
        self.require(version, Semver)
        self.pending += 1
        part = self.name(f"{version.code}.{node.function}", int)
        self.line(f"if {part.code} > {INT_MAX}: return slow(view)")
        return part

    def _text_test(self, node: Call) -> Value:
        if node.target is None or not isinstance(node.args[0], Literal) or not isinstance(node.args[0].value, str):
            raise Unsupported
        text = node.args[0].value
        value = self.value(node.target)
        self.require(value, str)
        match node.function:
            case "contains":
                self.count(f"-(-len({value.code}) // 10) * {tenth(len(text))}")
                return self.name(f"{text!r} in {value.code}", bool)
            case "matches":
                self.count(f"-(-(1 + len({value.code})) // 10) * {quarter(len(text))}")
                search = self.constant(compile_regex(text).search)
                return self.name(f"{search}({value.code}) is not None", bool)
            case _:
                self.pending += tenth(len(text))
                return self.name(f"{value.code}.{node.function.lower()}({text!r})", bool)


def terms(node: Node, operator: str) -> list[Node]:
    """The terms of a chain of one logical operator, in order."""
    if isinstance(node, Call) and node.function == operator:
        return [term for arg in node.args for term in terms(arg, operator)]
    return [node]
