"""One request in front of expressions: the values of their variables, and what they may still cost together.

Given ──values──▶ Evaluation ──run(expression)──▶ value, or why there is none
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from dray import cel
from dray.admission.authorizer import Authorizer, of_request
from dray.admission.environments import Offers, environment
from dray.admission.request import Request, Resource
from dray.admission.views import value_of
from dray.cel.types import DYN, Type
from dray.cel.values import MISSING, CelError, MapValue

__all__ = [
    "COST_BUDGET", "Compiled", "Evaluation", "ExpressionFailed", "Given", "OutOfBudget",
    "compile_expression", "compile_variables", "letters_to_compile", "request_document",
]  # fmt: skip

COST_BUDGET: Final = 10_000_000
"""What all expressions of a policy may cost for one request and one parameter, as in Kubernetes."""
_CHECKS: Final = 2 * 350_000
"""What questions to the authorizer cost. They take no time: who asks some is not slow yet."""
_NOW_WITH_CHECKS: Final = replace(cel.NOW, cost_limit=cel.NOW.cost_limit + _CHECKS)
_SEARCH_LETTERS: Final = 500
"""To compile regular expressions takes up to as long as so many letters of other expressions do."""
_AUTHORIZERS: Final = frozenset({"authorizer", "authorizer.requestResource"})


class ExpressionFailed(Exception):
    """An expression has no value here; the message is the one that Kubernetes gives."""


class OutOfBudget(Exception):
    """All expressions together cost too much."""

    def __init__(self) -> None:
        super().__init__("validation failed due to running out of cost budget, no further validation rules will be run")


@dataclass(frozen=True, slots=True)
class Compiled:
    """An expression: its program, or what is wrong with it."""

    expression: str
    program: cel.Program | None
    fault: str = ""
    asks: bool = False
    """Whether it asks what somebody may do."""


def letters_to_compile(expressions: Iterable[str]) -> int:
    """How much there is to compile, in letters."""
    return sum(len(each) + (_SEARCH_LETTERS if "matches" in each or "find" in each else 0) for each in expressions)


def compile_expression(expression: str, offers: Offers, variables: Mapping[str, Type], *results: Type) -> Compiled:
    """Compiles an expression of an object that is stored: what is wrong with it is told when it is evaluated."""
    try:
        program = cel.compile_program(expression, environment(offers, variables), *results)
    except cel.CompileError as error:
        return Compiled(expression, None, f"compilation failed: {error.render(expression)}")
    return Compiled(expression, program, asks=not _AUTHORIZERS.isdisjoint(program.uses))


class Given(msgspec.Struct, frozen=True, eq=False):
    """What expressions can look at, besides what the policy itself brings along.

    `resource` is the one that a rule is about, and `new` and `old` are objects in its version.
    """

    request: Request
    resource: Resource
    new: Any
    old: Any
    namespace: Any
    authorizer: Authorizer


class Evaluation:
    """Evaluates the expressions of one policy for one request, each variable at most once."""

    def __init__(
        self,
        given: Given,
        params: Any = None,
        variables: Mapping[str, Compiled] | None = None,
        budget: cel.Budget = cel.NOW,
        cost_budget: int = COST_BUDGET,
    ) -> None:
        self.remaining = cost_budget
        self._given = given
        self._budget = budget
        self._compiled: Mapping[str, Compiled] = variables or {}
        self._variables: _Variables | None = None
        self._new, self._old = value_of(given.new), value_of(given.old)
        self._params = params if params is None else value_of(params)
        self._request: _RequestView | None = None

    def run(self, compiled: Compiled, *, keeps_optional: bool = False) -> Any:
        """The value of an expression. Raises ExpressionFailed, OutOfBudget, Postponed, or what the budget raises."""
        program = compiled.program
        if program is None:
            raise ExpressionFailed(f"compilation error: {compiled.fault}")
        budget = _NOW_WITH_CHECKS if compiled.asks and self._budget is cel.NOW else self._budget
        try:
            value, cost = program.evaluate(self._values_of(program), budget, keeps_optional=keeps_optional)
        except cel.EvaluationError as error:
            self.remaining -= error.cost
            if self.remaining < 0:
                raise OutOfBudget from None
            raise ExpressionFailed(f"expression '{compiled.expression}' resulted in error: {error.message}") from None
        self.remaining -= cost
        if self.remaining < 0:
            raise OutOfBudget
        return value

    def _values_of(self, program: cel.Program) -> tuple[Any, ...]:
        """The values of all variables that the program could name; what nobody names is not made."""
        values: list[Any] = [None] * len(program.variables)
        for slot, name in program.used_slots:
            values[slot] = self._new if name == "object" else self._value_of(name)
        return tuple(values)

    def _value_of(self, name: str) -> Any:
        match name:
            case "object":
                return self._new
            case "oldObject":
                return self._old
            case "variables":
                if self._variables is None:
                    self._variables = _Variables(self, self._compiled)
                return self._variables
            case "params":
                return self._params
            case "request":
                if self._request is None:
                    self._request = _RequestView(self._given)
                return self._request
            case "namespaceObject":
                return value_of(self._given.namespace)
            case "authorizer":
                return self._given.authorizer
            case _:
                return of_request(self._given.authorizer, self._given.request)


def request_document(given: Given) -> dict[str, Any]:
    """The request as expressions see it, and but for the objects, webhooks."""
    request, resource = given.request, given.resource
    found: dict[str, Any] = {
        "kind": resource.gvk,
        "resource": resource.gvr,
        "requestKind": request.resource.gvk,
        "requestResource": request.resource.gvr,
        "operation": request.operation,
        "userInfo": request.user_info(),
        "dryRun": request.dry_run,
        "options": request.options,
    }
    if request.subresource:
        found["subResource"] = found["requestSubResource"] = request.subresource
    if request.name:
        found["name"] = request.name
    if request.namespace:
        found["namespace"] = request.namespace
    return found


class _RequestView(MapValue):
    """`request`. Most expressions ask for one thing, if any: the operation."""

    __slots__ = ("_given", "_made")

    def __init__(self, given: Given) -> None:
        self._given = given
        self._made: MapValue | None = None

    def find(self, key: Any) -> Any:
        request = self._given.request
        match key:
            case "operation":
                return request.operation
            case "name" if request.name:
                return request.name
            case "namespace" if request.namespace:
                return request.namespace
        return self._whole().find(key)

    def _whole(self) -> MapValue:
        if self._made is None:
            made: MapValue = value_of(request_document(self._given))
            self._made = made
        return self._made

    def keys(self) -> Iterator[Any]:
        return self._whole().keys()

    def __len__(self) -> int:
        return len(self._whole())


class _Variables(MapValue):
    """`variables`: each is evaluated when somebody first asks for it."""

    __slots__ = ("_compiled", "_evaluation", "_known")

    def __init__(self, evaluation: Evaluation, compiled: Mapping[str, Compiled]) -> None:
        self._evaluation = evaluation
        self._compiled = compiled
        self._known: dict[str, Any] = {}

    def find(self, key: Any) -> Any:
        compiled = self._compiled.get(key)
        if compiled is None:
            return MISSING
        if key not in self._known:
            self._known[key] = self._evaluate(key, compiled)
        return self._known[key]

    def _evaluate(self, name: str, compiled: Compiled) -> Any:
        if compiled.program is None:
            return CelError(f'composited variable "{name}" fails to compile: {compiled.fault}')
        try:
            return self._evaluation.run(compiled, keeps_optional=True)
        except ExpressionFailed as error:
            return CelError(f'composited variable "{name}" fails to evaluate: {error}')

    def keys(self) -> Iterator[Any]:
        return iter(self._compiled)

    def __len__(self) -> int:
        return len(self._compiled)


def compile_variables(
    declared: Sequence[tuple[str, str]], offers: Offers
) -> tuple[dict[str, Compiled], dict[str, Type]]:
    """Variables by name, each of which can use those before it, and their types."""
    found: dict[str, Compiled] = {}
    known: dict[str, Type] = {}
    for name, expression in declared:
        compiled = found[name] = compile_expression(expression, offers, known)
        known = {**known, name: DYN if compiled.program is None else compiled.program.result}
    return found, known
