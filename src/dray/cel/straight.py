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

Who bounds its work otherwise needs no costs, and gets a function that says the value alone. It reads variables as they
are in JSON, where their type is known (`Native`): most fields are compared, and need not become values of expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, TypeAlias

from dray.cel.attributes import Attribute, OperandAttribute, Qualifier, VariableAttribute
from dray.cel.equality import equal
from dray.cel.library.operators import ORDERS
from dray.cel.library.standard import size
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

__all__ = ["Native", "Straight", "Uncounted", "straight", "uncounted"]

Straight: TypeAlias = Callable[[tuple[Any, ...]], tuple[Any, int] | None]
"""Given the values of variables, the value of an expression and its cost; None if the steps have to tell."""
Uncounted: TypeAlias = Callable[[tuple[Any, ...]], Any]
"""The same without the cost."""


class Native(Protocol):
    """What is known of values in JSON."""

    @property
    def convert(self) -> Callable[[Any], Any]:
        """Makes a value of expressions."""
        ...

    @property
    def same(self) -> type | None:
        """The class of values that are the same for expressions, if they are of one."""
        ...

    @property
    def is_list(self) -> bool:
        """Whether it is of lists."""
        ...

    @property
    def parts(self) -> Mapping[str, tuple[str, Native]]:
        """Of objects, the fields that expressions know: by that name, their own name and what is known of them."""
        ...


_MOST_LINES: Final = 300
_MOST_INDENT: Final = 40
_NAMES: Final = {"MapValue": MapValue, "MISSING": MISSING, "CelError": CelError, "Optional": Optional, "equal": equal}


class _Unsupported(Exception):
    """A step of a sort that is left to the steps."""


def straight(root: Step) -> Straight | None:
    """A function for an expression; None if there is none."""
    made: Straight | None = _made(root, _Writer())
    return made


def uncounted(root: Step, natives: Mapping[int, Native]) -> Uncounted | None:
    """A function for an expression that does not count what it costs; None if there is none.

    Its values are as expressions have them, but for the `natives`, by slot.
    """
    made: Uncounted | None = _made(root, _Writer(natives))
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
    return names.pop("evaluate")  # a function among its own names would stay for ever (`process.garbage`)


def _is_plain(qualifier: Qualifier) -> bool:
    return not qualifier.is_optional and qualifier.compute is None


class _Writer:
    """Lines of code. `cost` is what the code costs on every path; what only some paths cost is added by lines."""

    def __init__(self, natives: Mapping[int, Native] | None = None) -> None:
        """With `natives`, costs do not count."""
        self.counts = natives is None
        self._natives = natives or {}
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
        if isinstance(attribute, VariableAttribute) and attribute.slot in self._natives:
            return self._native(attribute, is_converted=True)
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

    def _native(self, attribute: VariableAttribute, *, is_converted: bool) -> str:
        """Code for what is read from JSON; for a list, its length is of interest alone if it is not converted."""
        value, known = self._name(f"v[{attribute.slot}]"), self._natives[attribute.slot]
        rest = list(attribute.qualifiers)
        while rest and rest[0].key in known.parts and _is_plain(rest[0]):
            qualifier = rest.pop(0)
            name, known = known.parts[qualifier.key]
            self._line(f"if {value}.__class__ is not dict: return None")
            if qualifier.is_test:
                return self._presence(value, name, known)
            value = self._name(f"{value}.get({name!r})")
            self._line(f"if {value} is None: return None")
        if known.is_list and not is_converted and not rest:
            self._line(f"if {value}.__class__ is not list: return None")
            return value
        converted = f"{value} = {self._constant(known.convert)}({value})"
        if known.same is not None:
            self._line(f"if {value}.__class__ is not {self._constant(known.same)}: {converted}")
        else:
            self._line(converted)
        self._line(f"if {value}.__class__ is CelError: return None")
        for qualifier in rest:
            value = self._qualified(value, qualifier)
        return value

    def _presence(self, value: str, name: str, known: Native) -> str:
        """Code for ``has()``: what is there, but makes no sense, is left to the steps."""
        if known.same is None:
            found = self._name(f"{value}.get({name!r})")
            convert = self._constant(known.convert)
            self._line(f"if {found} is not None and {convert}({found}).__class__ is CelError: return None")
        return self._name(f"{name!r} in {value}")

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
        args = [self._measured(arg) if step.implementation is size else self.step(arg) for arg in step.args]
        result = self._name(self._result(step, args))
        self._line(f"if {result}.__class__ is CelError: return None")
        self._charge(step.cost, args, result)
        return result

    def _measured(self, step: Step) -> str:
        """Code for a value of which only the size counts."""
        attribute = step.attribute if isinstance(step, AttributeStep) else None
        if isinstance(attribute, VariableAttribute) and attribute.slot in self._natives:
            return self._native(attribute, is_converted=False)
        return self.step(step)

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
