"""From a checked tree to steps.

Planning also computes in advance what is constant: lists and maps of constants, conversions of constants, and
sets for ``in``. That is not an optimisation that could be left out, since what is constant costs nothing.
"""

from __future__ import annotations

from typing import Any, NoReturn

from dray.cel.allowance import More, endless
from dray.cel.ast import (
    Call,
    Comprehension,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Select,
    StructLiteral,
)
from dray.cel.attributes import (
    Attribute,
    ConditionalAttribute,
    Frame,
    OperandAttribute,
    Qualifier,
    VariableAttribute,
)
from dray.cel.environment import DEVICES, Environment
from dray.cel.errors import CompileError, EvaluationError, Issue, locate
from dray.cel.library import regex
from dray.cel.library.regex import RegexError, specialise
from dray.cel.library.standard import CONVERSIONS
from dray.cel.recursion import TOO_DEEP, with_deep_stack
from dray.cel.steps import (
    AttributeStep,
    CallStep,
    ConstantStep,
    EqualityStep,
    FoldStep,
    ListStep,
    LogicalStep,
    MapStep,
    MembershipStep,
    OptionalChainStep,
    Step,
    StructStep,
)
from dray.cel.values import (
    COST_LIMIT,
    CelError,
    InternalError,
    LiteralMap,
    TypeValue,
    Uint,
)

__all__ = ["Plan", "plan"]


class Plan:
    """An expression that is ready to be evaluated, step by step."""

    __slots__ = ("_size", "root")

    def __init__(self, root: Step, size: int) -> None:
        self.root = root
        self._size = size

    def start(self, *values: Any, more: More = endless, work: int = 0, cost_limit: int = COST_LIMIT) -> Frame:
        """The state for an evaluation with the values of the environment's variables, in their order.

        It may do some work before it asks for ``more``.
        """
        return Frame(values, self._size, more, work=work, cost_limit=cost_limit)

    def run(self, frame: Frame) -> Any:
        """The value of the expression, which may be a CelError; the cost is in the frame's ledger."""
        return self.root.run(frame)

    def finish(self, frame: Frame, *, is_deep: bool) -> Any:
        """As `run`, with room for a deep expression. Raises EvaluationError if there is no value to be had."""
        try:
            return with_deep_stack(self.root.run, frame) if is_deep else self.root.run(frame)
        except InternalError as error:
            raise EvaluationError(f"internal error: {error}", frame.ledger.cost) from None
        except RecursionError:
            raise EvaluationError(TOO_DEEP, frame.ledger.cost) from None


def plan(root: Node, text: str, environment: Environment = DEVICES) -> Plan:
    """Plan a checked tree; raises CompileError where a constant part has no value."""
    planner = _Planner(text, environment)
    step = planner.plan(root)
    return Plan(step, planner.size)


class _Planner:
    def __init__(self, text: str, environment: Environment) -> None:
        self._text = text
        self._functions = environment.functions
        self._globals = {name: slot for slot, name in enumerate(environment.variables)}
        self._scopes: list[dict[str, tuple[int, Step | None]]] = []
        self.size = 0
        self._planned = 0

    def plan(self, node: Node) -> Step:
        self._planned += 1
        match node:
            case Call():
                return self._call(node)
            case Literal():
                return ConstantStep(node.id, node.value)
            case Ident():
                return self._ident(node)
            case Select():
                return self._select(node)
            case ListLiteral():
                return self._list(node)
            case MapLiteral():
                return self._map(node)
            case Comprehension():
                return self._comprehension(node)
            case StructLiteral():
                values = [self.plan(value) for value in node.values]
                return StructStep(node.id, node.name, node.fields, values, node.optionals)
            case _:
                raise AssertionError(f"unchecked node {node!r}")

    def _ident(self, node: Ident) -> Step:
        if node.denotes is not None:
            return ConstantStep(node.id, TypeValue(node.denotes.name))
        if not node.is_global:
            for scope in reversed(self._scopes):
                if node.name in scope:
                    return AttributeStep(VariableAttribute(node.id, *scope[node.name]))
        return AttributeStep(VariableAttribute(node.id, self._globals[node.name]))

    def _select(self, node: Select) -> Step:
        if node.denotes is not None:
            return ConstantStep(node.id, TypeValue(node.denotes.name))
        if node.variable:
            return AttributeStep(VariableAttribute(node.id, self._globals[node.variable]))
        attribute = self._attribute(node.operand)
        attribute.add(Qualifier(node.id, node.field, is_test=node.is_test))
        return AttributeStep(attribute, is_test=node.is_test)

    def _attribute(self, operand: Node) -> Attribute:
        """The operand as something that qualifiers can be added to."""
        step = self.plan(operand)
        if isinstance(step, AttributeStep) and not step.is_test:
            return step.attribute
        return OperandAttribute(step.id, step)

    def _call(self, node: Call) -> Step:
        if node.function in ("_[_]", "_[?_]", "_?._"):
            return self._index(node)
        args = [self.plan(operand) for operand in node.operands]
        match node.function:
            case "_&&_":
                return LogicalStep(node.id, args, decisive=False)
            case "_||_":
                return LogicalStep(node.id, args, decisive=True)
            case "_?_:_":
                return self._conditional(node, args)
            case "_==_" | "_!=_":
                return EqualityStep(node.id, args[0], args[1], is_negated=node.function == "_!=_")
            case "or" | "orValue":
                return OptionalChainStep(node.id, args[0], args[1], unwraps=node.function == "orValue")
            case _:
                return self._function(node, args)

    def _conditional(self, node: Call, args: list[Step]) -> Step:
        then, otherwise = (
            arg.attribute if isinstance(arg, AttributeStep) else OperandAttribute(arg.id, arg) for arg in args[1:]
        )
        return AttributeStep(ConditionalAttribute(node.id, args[0], then, otherwise))

    def _index(self, node: Call) -> Step:
        attribute = self._attribute(node.args[0])
        index = self.plan(node.args[1])
        is_optional = node.function != "_[_]"
        if isinstance(index, ConstantStep):
            if index.value.__class__ not in (str, int, Uint, bool, float):
                self._fail(node, "a value of this type cannot be a key")
            attribute.add(Qualifier(node.id, index.value, is_optional=is_optional))
        elif isinstance(index, AttributeStep):
            attribute.add(Qualifier(node.id, compute=index.attribute.resolve, is_optional=is_optional))
        else:
            attribute.add(Qualifier(node.id, compute=index.run, is_optional=is_optional))
        return AttributeStep(attribute)

    def _function(self, node: Call, args: list[Step]) -> Step:
        overload = node.overloads[0] if len(node.overloads) == 1 else ""
        declared = self._functions[node.function]
        implementation, is_lazy = declared.bind(overload)
        pattern = args[1].value if len(args) > 1 and isinstance(args[1], ConstantStep) else None
        if node.function in regex.NAMES and isinstance(pattern, str):
            implementation, is_lazy = self._specialised(node, pattern), True
        step = CallStep(
            node.id,
            function=node.function,
            overload=overload,
            args=args,
            implementation=implementation,
            is_lazy=is_lazy,
            accepts_errors=declared.accepts_errors,
        )
        if node.function in CONVERSIONS and isinstance(args[0], ConstantStep):
            return self._folded(node, step)
        if overload == "in_list" and isinstance(args[1], ConstantStep):
            return _membership(node, args[0], args[1].value) or step
        return step

    def _specialised(self, node: Call, pattern: str) -> Any:
        try:
            return specialise(node.function, pattern)
        except RegexError as error:
            self._fail(node, str(error))

    def _folded(self, node: Call, step: CallStep) -> Step:
        value = step.compute(Frame((), 0))
        if isinstance(value, CelError):
            self._fail(node, value.message)
        return ConstantStep(node.id, value)

    def _list(self, node: ListLiteral) -> Step:
        elements = [self.plan(element) for element in node.elements]
        constants = [element for element in elements if isinstance(element, ConstantStep)]
        if len(constants) == len(elements) and not node.optionals:
            return ConstantStep(node.id, [constant.value for constant in constants])
        return ListStep(node.id, elements, node.optionals)

    def _map(self, node: MapLiteral) -> Step:
        entries = [(self.plan(entry.key), self.plan(entry.value), entry.is_optional) for entry in node.entries]
        items: list[tuple[Any, Any]] = []
        for key, value, is_optional in entries:
            if is_optional or not isinstance(key, ConstantStep) or not isinstance(value, ConstantStep):
                return MapStep(node.id, entries)
            items.append((key.value, value.value))
        try:
            return ConstantStep(node.id, LiteralMap(items))
        except InternalError as error:
            self._fail(node, str(error))

    def _comprehension(self, node: Comprehension) -> Step:
        init = self.plan(node.accu_init)
        over = self.plan(node.iter_range)
        accumulator = self._slot()
        self._scopes.append({node.accu_var: (accumulator, init)})
        names = (node.iter_var, node.iter_var2) if node.iter_var2 else (node.iter_var,)
        slots = tuple(self._slot() for _ in names)
        self._scopes.append({name: (slot, None) for name, slot in zip(names, slots, strict=True)})
        before = self._planned
        condition = self.plan(node.condition)
        step = self.plan(node.step)
        weight = self._planned - before
        self._scopes.pop()
        result = self.plan(node.result)
        self._scopes.pop()
        return FoldStep(
            node.id,
            over=over,
            accumulator=accumulator,
            slots=slots,
            condition=condition,
            step=step,
            result=result,
            weight=weight,
        )

    def _slot(self) -> int:
        self.size += 1
        return len(self._globals) + self.size - 1

    def _fail(self, node: Node, message: str) -> NoReturn:
        raise CompileError((Issue(message, *locate(self._text, node.offset)),))


def _membership(node: Call, arg: Step, values: list[Any]) -> Step | None:
    """A set for ``in``, if the list has nothing but primitive values that can be hashed."""
    if not values:
        return ConstantStep(node.id, False)
    if any(value.__class__ not in (bool, int, Uint, float, str) for value in values):
        return None
    return MembershipStep(node.id, arg, LiteralMap([(value, True) for value in _alike(values)]))


def _alike(values: list[Any]) -> list[Any]:
    """The values, and the doubles to which whole numbers among them are rounded."""
    return values + [float(value) for value in values if value.__class__ is int or value.__class__ is Uint]
