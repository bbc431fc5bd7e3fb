"""Rules of a schema (`x-kubernetes-validations`): compiled once, and evaluated where their part of an object is.

A schema becomes one function per part that has rules in it or below it. Expressions see the part as `self` and, in an
update, what it was as `oldSelf`; rules that speak of `oldSelf` are for parts that were there before. What all rules of
an object may cost together is bounded, and so is each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from dray.api.field import FieldError, Reason, duplicate, forbidden, invalid, required
from dray.api.generated.apiextensions import JSONSchemaProps, ValidationRule
from dray.cel import types
from dray.cel.allowance import LIGHT_STEPS, More
from dray.cel.environment import Environment
from dray.cel.errors import CostsTooMuch, EvaluationError, NoSuchOverload, Postponed
from dray.cel.program import Budget, Program, compile_program, uncounted_of
from dray.cel.straight import Uncounted
from dray.cel.values import MISSING, CostLimitExceeded, Optional
from dray.custom.cel_values import Convert, Shape, shape_of
from dray.custom.problems import MapKey, Problem, below
from dray.custom.ratcheting import NOTHING, corresponding

MOST_COST: Final = 10_000_000
"""What the rules of one object may cost together."""
MOST_COST_OF_ONE: Final = 1_000_000
QUICK_EVALUATIONS: Final = 300
CHUNK: Final = 50
QUICK_CHUNKS: Final = LIGHT_STEPS // CHUNK
LONGEST_MESSAGE: Final = 5 * 1024

_OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"


class OutOfBudget(Exception):
    """No more rules are evaluated; `problem` says why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__()
        self.problem = problem


class Run:
    """The evaluation of all rules of one object. Raises Postponed where that takes longer than others can wait.

    Here and now there is time for some hundred evaluations and some hundred rounds of loops. What ends within that is
    far from every bound on costs, so these are only counted where there is more time.
    """

    def __init__(self, more: More | None = None) -> None:
        """Without `more`, here and now."""
        self._left = MOST_COST
        self._evaluations = QUICK_EVALUATIONS
        self._chunks = QUICK_CHUNKS
        self.is_quick = more is None
        self._given = more
        self._budget: Budget | None = None

    def _more(self) -> int:
        self._chunks -= 1
        if self._chunks < 0:
            raise Postponed
        return CHUNK

    def take(self, count: int) -> None:
        """So many evaluations are made here and now. Raises Postponed."""
        self._evaluations -= count
        if self._evaluations < 0:
            raise Postponed

    def _budget_of_one(self) -> Budget:
        """Made when it is needed: most rules hold, which is seen without."""
        if self._budget is None:
            more = self._given
            quick = Budget(self._more, counts=False)
            self._budget = quick if more is None else Budget(more, cost_limit=MOST_COST_OF_ONE)
        return self._budget

    def evaluate(self, program: Program, values: tuple[Any, Any], kind: str) -> Any:
        """The value of an expression. Raises EvaluationError, OutOfBudget or Postponed."""
        budget = self._budget_of_one()
        if self.is_quick:
            self.take(1)
            return program.evaluate(values, budget)[0]
        cost = 0
        try:
            value, cost = program.evaluate(values, budget)
        except EvaluationError as error:
            cost = error.cost or 0
            raise
        finally:
            self._left -= cost
            if self._left < 0:
                raise OutOfBudget(Problem((), lambda path: invalid(path, kind, _OUT_OF_BUDGET)))
        return value


Judge: TypeAlias = Callable[[Any, Any, Run], list[Problem] | None]
"""Judges a value, given what it was before (NOTHING if it was not there)."""


class CompiledRule:
    """One compiled rule. Raises CompileError."""

    def __init__(self, rule: ValidationRule, shape: Shape) -> None:
        self._rule = rule
        self.is_optional = bool(rule.optional_old_self)
        old = types.optional_of(shape.type) if self.is_optional else shape.type
        environment = self.environment = Environment({"self": shape.type, "oldSelf": old}, shape.structs)
        self.program = compile_program(rule.rule, environment, types.BOOL)
        self.message = (
            compile_program(rule.message_expression, environment, types.STRING) if rule.message_expression else None
        )
        self.uses_old = "oldSelf" in self.program.uses

    def judge(self, value: Any, old: Any, raw: Any, kind: str, run: Run) -> Problem | None:
        """What is wrong, if anything. `value` and `old` are as expressions see them. Raises OutOfBudget, Postponed."""
        if self.uses_old and old is MISSING and not self.is_optional:
            return None
        before = (Optional() if old is MISSING else Optional(old)) if self.is_optional else old
        values = (value, None if before is MISSING else before)
        try:
            if run.evaluate(self.program, values, kind) is True:
                return None
        except EvaluationError as error:
            return self._failed(error, kind)
        return self._broken(values, raw, kind, run)

    def _failed(self, error: EvaluationError, kind: str) -> Problem:
        why = error.message
        about = f"{why} evaluating rule: {self._default_message}"
        if isinstance(error, NoSuchOverload):
            said = "call arguments did not match a supported operator, function or macro signature for rule"
            about = f"'{why}': {said}: {self._default_message}"
        if isinstance(error, CostsTooMuch):
            said = "no further validation rules will be run due to call cost exceeds limit for rule"
            about = f"'{why}': {said}: {self._default_message}"
            raise OutOfBudget(Problem((), lambda path: invalid(path, kind, about)))
        return Problem((), lambda path: invalid(path, kind, about), is_transition=True)

    def _broken(self, values: tuple[Any, Any], raw: Any, kind: str, run: Run) -> Problem:
        detail = self._said(values, kind, run)
        rule = self._rule
        suffix = rule.field_path if rule.field_path.startswith((".", "[")) else f".{rule.field_path}"
        where = suffix if rule.field_path else ""

        def build(path: str) -> FieldError:
            place = f"{path}{where}".removeprefix(".") or "<nil>"
            match rule.reason:
                case Reason.REQUIRED:
                    return required(place, detail)
                case Reason.FORBIDDEN:
                    return forbidden(place, detail)
                case Reason.DUPLICATE:
                    return duplicate(place, raw)
            if kind in ("object", "array"):
                return FieldError(Reason.INVALID, place, f"Invalid value: {detail}")
            return invalid(place, raw, detail)

        return Problem((), build, is_transition=self.uses_old)

    def _said(self, values: tuple[Any, Any], kind: str, run: Run) -> str:
        if self.message is not None:
            try:
                text = run.evaluate(self.message, values, kind)
            except EvaluationError:
                text = None
            if isinstance(text, str) and text.strip() and "\n" not in text and len(text) <= LONGEST_MESSAGE:
                return text.strip()
        return self._default_message

    @property
    def _default_message(self) -> str:
        return self._rule.message.strip() or f"failed rule: {self._rule.rule.strip()}"


def compile_rules(schema: JSONSchemaProps, *, is_root: bool = False) -> Judge | None:
    """The function that evaluates the rules of a schema; None if it has none. Raises CompileError."""
    parts = {name: made for name, part in schema.properties.items() if (made := compile_rules(part)) is not None}
    others, items = schema.additional_properties, schema.items
    values = compile_rules(others) if isinstance(others, JSONSchemaProps) else None
    item = compile_rules(items) if isinstance(items, JSONSchemaProps) else None
    own = _own_rules(schema, is_root=is_root)
    if not parts and values is None and item is None and own is None:
        return None
    is_atomic = schema.x_kubernetes_map_type == "atomic"
    declared = frozenset(schema.properties)

    def judge(value: Any, old: Any, run: Run) -> list[Problem] | None:
        if value is None:
            return None
        found = own(value, old, run) if own is not None else None
        if value.__class__ is dict:
            before = old if old.__class__ is dict and not is_atomic else {}
            for name, inner in parts.items():
                if name in value:
                    found = _joined(found, name, inner(value[name], before.get(name, NOTHING), run))
            if values is not None:
                for name, part in value.items():
                    if name not in declared:
                        found = _joined(found, MapKey(name), values(part, before.get(name, NOTHING), run))
        elif value.__class__ is list and item is not None:
            for index, element in enumerate(value):
                found = _joined(found, index, item(element, corresponding(schema, element, old), run))
        return found

    return judge


def _joined(found: list[Problem] | None, step: str | int, inner: list[Problem] | None) -> list[Problem] | None:
    if inner is None:
        return found
    found = [] if found is None else found
    found += below(step, inner)
    return found


_Tests: TypeAlias = list[tuple[CompiledRule, Uncounted | None]]
"""Rules, each with a function that sees at a look that it holds, if there is one."""


def _doubtful(tests: _Tests, values: tuple[Any, Any], run: Run) -> list[CompiledRule]:
    """The rules that are not seen to hold: what is with them has to be worked out. Raises Postponed."""
    run.take(len(tests))
    try:
        return [rule for rule, test in tests if test is None or test(values) is not True]
    except CostLimitExceeded:
        return [rule for rule, _ in tests]


def _own_rules(schema: JSONSchemaProps, *, is_root: bool) -> Judge | None:
    if not schema.x_kubernetes_validations:
        return None
    shape = shape_of(schema, "self", is_root=is_root)
    if shape is None:
        return None
    rules = [CompiledRule(rule, shape) for rule in schema.x_kubernetes_validations if rule.rule.strip()]
    convert: Convert = shape.convert
    kind = schema.type
    natives = {0: shape, 1: shape}
    tests: _Tests = [(rule, None if rule.is_optional else uncounted_of(rule.program, natives)) for rule in rules]
    of_new = [(rule, test) for rule, test in tests if rule.is_optional or not rule.uses_old]

    def judge(value: Any, old: Any, run: Run) -> list[Problem] | None:
        is_new = old is NOTHING or old is None
        left = rules
        if run.is_quick:
            left = _doubtful(of_new, (value, None), run) if is_new else _doubtful(tests, (value, old), run)
            if not left:
                return None
        seen, before = convert(value), MISSING if is_new else convert(old)
        problems = [problem for rule in left if (problem := rule.judge(seen, before, value, kind, run)) is not None]
        return problems or None

    return judge
