"""ValidatingAdmissionPolicy: expressions that a request must fulfil, where a binding says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from dray import cel
from dray.admission import policies
from dray.admission.conditions import Conditions, ConditionsFailed
from dray.admission.evaluation import (
    Compiled,
    Evaluation,
    ExpressionFailed,
    Given,
    OutOfBudget,
    compile_expression,
    compile_variables,
    letters_to_compile,
)
from dray.admission.policies import IGNORE, matcher_of, offers_of
from dray.api.generated.admissionregistration import (
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
    Validation,
)
from dray.cel.types import BOOL, NULL, STRING

__all__ = ["Binding", "ValidatingPolicy", "Verdict", "Violation", "join_annotations"]

LONGEST_MESSAGE: Final = 5 * 1024


@dataclass(frozen=True, slots=True)
class Violation:
    """A validation that failed: its place in the policy, what to say, and the reason of the answer."""

    index: int
    message: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a policy says of a request: what it violates, what is to be noted in the audit log, and what went wrong
    with those notes."""

    violations: tuple[Violation, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    failures: tuple[str, ...] = ()


_FINE: Final = Verdict()


class Binding(policies.Binding):
    """A binding that also says what is done about violations."""

    def __init__(self, stored: ValidatingAdmissionPolicyBinding) -> None:
        super().__init__(stored)
        self.actions: Final = stored.spec.validation_actions


class ValidatingPolicy:
    """A policy. Its expressions are compiled when they are first needed, by `compile`, which may take a while."""

    def __init__(self, stored: ValidatingAdmissionPolicy) -> None:
        spec = stored.spec
        self.name: Final = stored.metadata.name
        self.param_kind: Final = spec.param_kind
        self.ignores_failures: Final = spec.failure_policy == IGNORE
        self.matcher: Final = matcher_of(spec.match_constraints)
        self.has_annotations: Final = bool(spec.audit_annotations)
        self.is_compiled = False
        self._spec = spec
        self._conditions: Conditions | None = None
        self._variables: dict[str, Compiled] = {}
        self._rules: list[_Rule] = []
        self._annotations: list[tuple[str, Compiled]] = []

    @property
    def size(self) -> int:
        """How many letters there are to compile."""
        spec = self._spec
        texts = [each.expression + each.message_expression for each in spec.validations]
        texts += [each.expression for each in spec.variables]
        texts += [each.expression for each in spec.match_conditions]
        texts += [each.value_expression for each in spec.audit_annotations]
        return letters_to_compile(texts)

    def compile(self) -> None:
        """Compiles all expressions; what is wrong with one is told when it is evaluated."""
        spec = self._spec
        has_params = spec.param_kind is not None
        asking, telling = offers_of(has_params=has_params), offers_of(has_params=has_params, authorizes=False)
        if spec.match_conditions:
            self._conditions = Conditions(spec.match_conditions, asking)
        self._variables, types = compile_variables([(each.name, each.expression) for each in spec.variables], asking)
        self._rules = [
            _Rule(
                validation,
                compile_expression(validation.expression, asking, types, BOOL),
                compile_expression(validation.message_expression, telling, types, STRING)
                if validation.message_expression
                else None,
            )
            for validation in spec.validations
        ]
        self._annotations = [
            (note.key, compile_expression(note.value_expression, asking, types, STRING, NULL))
            for note in spec.audit_annotations
        ]
        self.is_compiled = True

    def judge(self, given: Given, params: Any, budget: cel.Budget = cel.NOW) -> Verdict:
        """What the policy says of a request, with one object as parameters.

        Raises Postponed, or what `budget` raises.
        """
        if self._conditions is not None:
            try:
                if not self._conditions.hold(given, params, budget):
                    return Verdict()
            except ConditionsFailed as error:
                return self._failed(str(error))
        evaluation = Evaluation(given, params, self._variables, budget)
        violations: tuple[Violation, ...] = ()
        try:
            for index, rule in enumerate(self._rules):
                try:
                    if evaluation.run(rule.compiled) is True:
                        continue
                    violation = Violation(index, _message(rule, evaluation), rule.stored.reason or "Invalid")
                except ExpressionFailed as error:
                    if self.ignores_failures:
                        continue
                    violation = Violation(index, str(error))
                violations = (*violations, violation)
        except OutOfBudget as error:
            return self._failed(str(error))
        if not self._annotations:
            return Verdict(violations) if violations else _FINE
        return self._annotated(violations, Evaluation(given, params, self._variables, budget))

    def _failed(self, why: str) -> Verdict:
        return Verdict() if self.ignores_failures else Verdict((Violation(0, why),))

    def _annotated(self, violations: tuple[Violation, ...], evaluation: Evaluation) -> Verdict:
        notes: list[tuple[str, str]] = []
        failures: list[str] = []
        for key, compiled in self._annotations:
            try:
                value = evaluation.run(compiled)
            except ExpressionFailed as error:
                failures.append(str(error))
                continue
            except OutOfBudget as error:
                return self._failed(str(error))
            text = value.strip() if isinstance(value, str) else ""
            if value is not None and not isinstance(value, str):
                failures.append(
                    f"valueExpression '{compiled.expression}' resulted in unsupported return type: "
                    f"{value.__class__.__name__}. Return type must be either string or null."
                )
            elif text:
                notes.append((key, text))
        return Verdict(violations, tuple(notes), () if self.ignores_failures else tuple(failures))


@dataclass(frozen=True, slots=True)
class _Rule:
    stored: Validation
    compiled: Compiled
    message: Compiled | None


def _message(rule: _Rule, evaluation: Evaluation) -> str:
    text: Any = ""
    if rule.message is not None:
        try:
            text = evaluation.run(rule.message)
        except ExpressionFailed:
            text = ""
    text = text.strip() if isinstance(text, str) else ""
    if len(text.encode()) > LONGEST_MESSAGE or "\n" in text:
        text = ""
    return text or rule.stored.message.strip() or f"failed expression: {rule.stored.expression.strip()}"


def join_annotations(verdicts: Sequence[Verdict]) -> dict[str, str]:
    """The notes of several verdicts of one policy; different values of one key stand in one line."""
    values: dict[str, dict[str, None]] = {}
    for verdict in verdicts:
        for key, value in verdict.annotations:
            values.setdefault(key, {})[value] = None
    return {key: ", ".join(found) for key, found in values.items()}
