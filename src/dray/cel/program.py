"""Expressions over the variables of any environment: what admission policies and custom resources evaluate.

They are evaluated by steps, those without loops by ``straight`` code. Most take some microseconds. Who others wait for
evaluates ``NOW``, which raises Postponed if it takes longer; who has a thread and some time calls it with a ``Budget``
of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dray.cel.allowance import LIGHT_COST, LIGHT_STEPS, More, endless, postpone
from dray.cel.ast import Ident, Node, Select, children
from dray.cel.checker import check
from dray.cel.environment import Environment
from dray.cel.errors import (
    CompileError,
    CostsTooMuch,
    EvaluationError,
    Issue,
    NoSuchOverload,
    Postponed,
    WrongResult,
    locate,
)
from dray.cel.ledger import UNACCOUNTED
from dray.cel.long_calls import takes_longer
from dray.cel.parser import parse
from dray.cel.planner import Plan, plan
from dray.cel.recursion import DEEP, TOO_DEEP, with_room
from dray.cel.straight import Native, Uncounted, straight, uncounted
from dray.cel.types import Type
from dray.cel.validators import validate
from dray.cel.values import (
    COST_LIMIT,
    NO_SUCH_OVERLOAD,
    CelError,
    ConcatList,
    CostLimitExceeded,
    Optional,
)

__all__ = ["NOW", "UNHURRIED", "Budget", "Program", "compile_program", "uncounted_of"]

_WRAPPED: Final = (Optional, ConcatList)


@dataclass(frozen=True, slots=True)
class Budget:
    """What an evaluation may do: some ``work`` before it asks for ``more``, and up to a cost.

    ``is_light``: who costs more is not refused, but postponed. ``counts``: without, costs are neither counted nor
    bounded, which takes half the time, and is for work that is bounded otherwise.
    """

    more: More = endless
    work: int = 0
    cost_limit: int = COST_LIMIT
    is_light: bool = False
    counts: bool = True


NOW: Final = Budget(postpone, LIGHT_STEPS, LIGHT_COST, is_light=True)
UNHURRIED: Final = Budget()


class Program:
    """A compiled expression. ``result`` is its static type; of the environment's ``variables`` it ``uses`` some."""

    __slots__ = (
        "_is_deep",
        "_plan",
        "_straight",
        "_takes_longer",
        "expression",
        "result",
        "used_slots",
        "uses",
        "variables",
    )

    def __init__(self, expression: str, environment: Environment, root: Node, planned: Plan, *, is_deep: bool) -> None:
        """Internal: use ``compile_program``."""
        self.expression: Final = expression
        self.variables: Final = tuple(environment.variables)
        self.result: Final = root.type
        self.uses: Final = frozenset(_variables(root))
        self.used_slots: Final = tuple((slot, name) for slot, name in enumerate(self.variables) if name in self.uses)
        """Where in the values those variables are."""
        self._plan = planned
        self._is_deep = is_deep
        self._takes_longer = takes_longer(root)
        self._straight = None if is_deep else straight(planned.root)

    def evaluate(
        self, values: tuple[Any, ...], budget: Budget = UNHURRIED, *, keeps_optional: bool = False
    ) -> tuple[Any, int]:
        """The value of the expression and what it cost, for the variables' values in the environment's order.

        Of an optional value it is what is in it, unless another expression goes on with it (`keeps_optional`).

        Raises EvaluationError, Postponed if the budget is light and used up, and whatever ``budget.more`` raises.
        """
        if budget.is_light and self._takes_longer:
            raise Postponed
        if self._straight is not None:
            try:
                done = self._straight(values)
            except CostLimitExceeded:
                done = None  # it is told below
            if done is not None and done[1] <= budget.cost_limit and done[0].__class__ not in _WRAPPED:
                return done
        frame = self._plan.start(*values, more=budget.more, work=budget.work, cost_limit=budget.cost_limit)
        if not budget.counts:
            frame.ledger = UNACCOUNTED
        try:
            value = self._plan.finish(frame, is_deep=self._is_deep)
        except CostLimitExceeded:
            if budget.is_light:
                raise Postponed from None
            message = f"operation cancelled: actual cost limit exceeded: it costs more than {budget.cost_limit}"
            raise CostsTooMuch(message, frame.ledger.cost) from None
        while value.__class__ is Optional and value.has_value and not keeps_optional:
            value = value.value
        if budget.is_light and value.__class__ is ConcatList and value.size > LIGHT_STEPS:
            raise Postponed  # a list that is added to itself, variable by variable, is quick to make and slow to use
        if value.__class__ is CelError:
            failure = NoSuchOverload if value is NO_SUCH_OVERLOAD else EvaluationError
            raise failure(value.message, frame.ledger.cost)
        return value, frame.ledger.cost

    def __repr__(self) -> str:
        return f"Program({self.expression!r})"


def uncounted_of(program: Program, natives: Mapping[int, Native]) -> Uncounted | None:
    """A function that says the value of a program without what it cost, or nothing (None) of what is unusual.

    None for programs that have none: `evaluate` tells in either case. Of the values that it is given, those in the
    slots of `natives` are JSON. It is made anew each time; it raises CostLimitExceeded where a value becomes too large.
    """
    has_none = program._is_deep or program._takes_longer  # what takes long cannot be stopped
    return None if has_none else uncounted(program._plan.root, natives)


def compile_program(expression: str, environment: Environment, *results: Type) -> Program:
    """Compile an expression, whose type must be one of the ``results`` if there are any; raises CompileError.

    What could be of any type is of none of them.
    """
    try:
        return with_room(expression, _compile, expression, environment, results)
    except RecursionError:
        raise CompileError((Issue(TOO_DEEP, 1, 1),)) from None


def _compile(expression: str, environment: Environment, results: tuple[Type, ...]) -> Program:
    try:
        expression.encode()
    except UnicodeEncodeError as error:
        issue = Issue("the expression is not valid Unicode", *locate(expression, error.start))
        raise CompileError((issue,)) from None
    parsed = parse(expression, binds=False)  # which Kubernetes offers to device selectors alone
    check(parsed.root, expression, environment)
    validate(parsed.root, expression)
    found = parsed.root.type
    if results and found not in results:
        wanted = results[0].text if len(results) == 1 else f"one of [{' '.join(each.text for each in results)}]"
        raise WrongResult((Issue(f"must evaluate to {wanted} but got {found.text}", 1, 1),))
    planned = plan(parsed.root, expression, environment)
    return Program(expression, environment, parsed.root, planned, is_deep=parsed.height >= DEEP)


def _variables(root: Node) -> Iterator[str]:
    """The variables of the environment that an expression mentions."""
    pending = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, Ident) and node.is_global and node.denotes is None:
            yield node.name
        elif isinstance(node, Select) and node.variable:
            yield node.variable
            continue
        pending.extend(children(node))
