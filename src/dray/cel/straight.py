"""Code for programs without loops: what most expressions of policies and custom resources are.

The steps say what an expression means and costs. A straight program does the same without their account: it adds up
what it costs, and gives up (`None`) on anything unusual, such as a missing field or an error; then the steps tell, from
the beginning. `object.spec.replicas > 1 && has(object.metadata.labels)` becomes

    def evaluate(v):
        c = 0
        t1 = True
        while True:
            t2 = v[0]
            if not isinstance(t2, MapValue): return None
            t3 = t2.find('spec')
            …
            break
        return t1, c

Who bounds its work otherwise needs no costs, and gets a function that says the value alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from dray.cel.attributes import Attribute, OperandAttribute, Qualifier, VariableAttribute
from dray.cel.equality import equal
from dray.cel.library.operators import ORDERS
from dray.cel.steps import (
    AttributeStep,
    CallStep,
    ConstantStep,
    EqualityStep,
    LogicalStep,
    MembershipStep,
    Step,
)
from dray.cel.values import MISSING, CelError, MapValue, Optional

__all__ = ["Straight", "Uncounted", "straight", "uncounted"]

Straight: TypeAlias = Callable[[tuple[Any, ...]], tuple[Any, int] | None]
"""Given the values of variables, the value of an expression and its cost; None if the steps have to tell."""
Uncounted: TypeAlias = Callable[[tuple[Any, ...]], Any]
"""The same without the cost."""

_MOST_LINES: Final = 300
_MOST_INDENT: Final = 40
_NAMES: Final = {"MapValue": MapValue, "MISSING": MISSING, "CelError": CelError, "Optional": Optional, "equal": equal}


class _Unsupported(Exception):
    """A step of a sort that is left to the steps."""


def straight(root: Step) -> Straight | None:
    """A function for an expression; None if there is none."""
    made: Straight | None = _made(root, _Writer())
    return made


def uncounted(root: Step) -> Uncounted | None:
    """A function for an expression that does not count what it costs; None if there is none."""
    made: Uncounted | None = _made(root, _Writer(counts=False))
    return made


def _made(root: Step, writer: _Writer) -> Any:
    try:
        result = writer.step(root)
    except _Unsupported:
        return None
    told = f"{result}, c + {writer.cost}" if writer.counts else result
    start = [" c = 0"] if writer.counts else []
    code = "\n".join(["def evaluate(v):", *start, *writer.lines, f" return {told}"])
    names = {**_NAMES, **writer.constants}
    exec(compile(code, "<straight program>", "exec"), names)
    return names["evaluate"]


class _Writer:
    """Lines of code. `cost` is what the code costs on every path; what only some paths cost is added by lines."""

    def __init__(self, *, counts: bool = True) -> None:
        self.counts = counts
        self.lines: list[str] = []
        self.constants: dict[str, Any] = {}
        self.cost = 0
        self._names = 0
        self._indent = " "

    def step(self, step: Step) -> str:
        """Code for a step; the name of its value, which is neither an error nor missing."""
        match step:
            case ConstantStep():
                return self._constant(step.value)
            case AttributeStep():
                return self._attribute(step)
            case CallStep():
                return self._call(step)
            case EqualityStep():
                return self._equality(step)
            case LogicalStep():
                return self._logical(step)
            case MembershipStep():
                arg = self.step(step.arg)
                return self._name(f"{self._constant(step.members)}.has({arg})")
        raise _Unsupported

    def _attribute(self, step: AttributeStep) -> str:
        attribute: Attribute = step.attribute
        if isinstance(attribute, VariableAttribute) and attribute.init is None:
            value = self._name(f"v[{attribute.slot}]")
        elif isinstance(attribute, OperandAttribute) and isinstance(attribute.operand, Step):
            value = self.step(attribute.operand)
        else:
            raise _Unsupported
        for qualifier in attribute.qualifiers:
            value = self._qualified(value, qualifier)
        self.cost += step.cost
        return value

    def _qualified(self, value: str, qualifier: Qualifier) -> str:
        if qualifier.is_optional or qualifier.compute is not None or qualifier.key.__class__ is not str:
            raise _Unsupported
        self.cost += 1
        self._line(f"if not isinstance({value}, MapValue): return None")
        found = self._name(f"{value}.find({qualifier.key!r})")
        if qualifier.is_test:
            self._line(f"if {found}.__class__ is CelError: return None")
            return self._name(f"{found} is not MISSING")
        self._line(f"if {found} is MISSING or {found}.__class__ is CelError: return None")
        return found

    def _call(self, step: CallStep) -> str:
        if step.accepts_errors:
            raise _Unsupported
        args = [self.step(arg) for arg in step.args]
        result = self._name(self._result(step, args))
        self._line(f"if {result}.__class__ is CelError: return None")
        self._charge(step.cost, args, result)
        return result

    def _result(self, step: CallStep, args: list[str]) -> str:
        """Code for a call. Most comparisons are between numbers that Python compares as well."""
        called = f"{self._constant(step.implementation)}({', '.join(args)})"
        symbol = ORDERS.get(step.implementation)
        if symbol is None:
            return called
        numbers = " and ".join(f"{arg}.__class__ is int" for arg in args)
        return f"{args[0]} {symbol} {args[1]} if {numbers} else {called}"

    def _equality(self, step: EqualityStep) -> str:
        args = [self.step(step.left), self.step(step.right)]
        result = self._name(f"equal({args[0]}, {args[1]})")
        self._line(f"if {result}.__class__ is CelError: return None")
        if step.is_negated:
            result = self._name(f"not {result}")
        if not self.counts:
            return result
        texts = " and ".join(f"{arg}.__class__ is str" for arg in args)
        charged = f"{self._constant(step.cost)}(({args[0]}, {args[1]}), {result})"
        self._line(f"c += -(-min(len({args[0]}), len({args[1]})) // 10) if {texts} else {charged}")
        return result

    def _charge(self, cost: Any, args: list[str], result: str) -> None:
        if cost is None:
            self.cost += 1
        elif self.counts:
            self._line(f"c += {self._constant(cost)}(({', '.join(args)},), {result})")

    def _logical(self, step: LogicalStep) -> str:
        """A loop that ends after one round, or as soon as a term decides."""
        result = self._name(repr(not step.decisive))
        before = self.cost
        self._line("while True:")
        self._indent += " "
        for term in step.terms:
            self.cost = 0
            value = self.step(term)
            if self.cost and self.counts:
                self._line(f"c += {self.cost}")
            self._line(f"if {value}.__class__ is not bool: return None")
            self._line(f"if {value} is {step.decisive}:")
            self._line(f" {result} = {step.decisive}; break")
        self._line("break")
        self._indent = self._indent[:-1]
        self.cost = before
        return result

    def _constant(self, value: Any) -> str:
        name = f"k{len(self.constants)}"
        self.constants[name] = value
        return name

    def _name(self, code: str) -> str:
        self._names += 1
        self._line(f"t{self._names} = {code}")
        return f"t{self._names}"

    def _line(self, code: str) -> None:
        if len(self.lines) >= _MOST_LINES or len(self._indent) > _MOST_INDENT:
            raise _Unsupported
        self.lines.append(self._indent + code)
