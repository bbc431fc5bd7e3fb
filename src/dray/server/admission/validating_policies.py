"""Asks ValidatingAdmissionPolicies about a write."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from dray import cel
from dray.admission import validating_policy
from dray.admission.evaluation import Given
from dray.admission.validating_policy import Binding, ValidatingPolicy, Verdict, Violation
from dray.api.meta import StatusCause
from dray.api.status import ApiError
from dray.server import errors
from dray.server.admission.admission_request import AdmissionRequest
from dray.server.admission.policy_runner import PolicyRunner, Unusable
from dray.server.admission.slow_policies import TookTooLong
from dray.server.indexes.admission_configuration import BoundValidating

__all__ = ["ValidatingPolicies"]

FAILURES: Final = "validation.policy.admission.k8s.io/validation_failure"
MOST_FAILURES: Final = 50
AT_ONCE: Final = 16
"""Evaluations of one policy for one request that are made on the loop; with more parameters they go beside it."""
LONGEST_ANNOTATION: Final = 10 * 1024
_CODES: Final = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413}


@dataclass(frozen=True, slots=True)
class _Denial:
    """Why a request is refused; `binding` is empty if the policy itself is at fault."""

    policy: str
    binding: str
    message: str
    reason: str = ""
    index: int = 0

    def __str__(self) -> str:
        where = f" with binding '{self.binding}'" if self.binding else ""
        return f"ValidatingAdmissionPolicy '{self.policy}'{where} denied request: {self.message}"


class ValidatingPolicies:
    """Refuses what policies deny, says what they warn of, and notes what they want noted."""

    def __init__(self, runner: PolicyRunner) -> None:
        self._runner = runner

    async def check(self, asked: AdmissionRequest, hooks: Sequence[BoundValidating]) -> None:
        """Asks all policies. Raises ApiError with the first denial."""
        denials: list[_Denial] = []
        failures: list[_Denial] = []
        for policy, bindings in hooks:
            await self._ask(asked, policy, bindings, denials, failures)
        if failures:
            asked.call.annotations[FAILURES] = _as_json(failures, hooks)
        if denials:
            raise _refusal(asked, denials[0])

    async def _ask(
        self,
        asked: AdmissionRequest,
        policy: ValidatingPolicy,
        bindings: tuple[Binding, ...],
        denials: list[_Denial],
        failures: list[_Denial],
    ) -> None:
        """Adds what one policy denies, and what it wants to be noted as failed."""
        verdicts: list[Verdict] = []
        given: Given | None = None
        for each in await self._runner.concerns(asked, policy, bindings):
            if isinstance(each, Unusable):
                if not policy.ignores_failures:
                    denials.append(_Denial(policy.name, each.binding, each.message))
                continue
            if given is None:
                given = self._runner.given(asked, each.resource)
            judged = _judged_now(asked, policy, given, each.params, len(verdicts))
            if judged is None:
                judged = await self._judge_all(asked, policy, given, each.params, len(verdicts))
            for verdict in judged:
                verdicts.append(verdict)
                if verdict.violations or verdict.failures:
                    _act(asked, policy, each.binding, verdict, denials, failures)
        if not policy.has_annotations:
            return
        for key, value in validating_policy.join_annotations(verdicts).items():
            asked.call.annotations[f"{policy.name}/{key}"] = value[:LONGEST_ANNOTATION]

    async def _judge_all(
        self, asked: AdmissionRequest, policy: ValidatingPolicy, given: Given, params: Sequence[Any], before: int
    ) -> Sequence[Verdict]:
        """What a policy says, with each of its parameters: of many, after so many before, beside the loop."""
        if before + len(params) <= AT_ONCE:
            return [await self._judge(asked, policy, given, each) for each in params]
        await self._runner.compiled(asked, policy)
        try:
            return await self._runner.evaluate(
                asked, given, lambda given, budget: [policy.judge(given, each, budget) for each in params], is_long=True
            )
        except TookTooLong as error:
            return () if policy.ignores_failures else [Verdict((Violation(0, str(error)),))]

    async def _judge(self, asked: AdmissionRequest, policy: ValidatingPolicy, given: Given, params: Any) -> Verdict:
        try:
            await self._runner.compiled(asked, policy)
            return await self._runner.evaluate(asked, given, lambda given, budget: policy.judge(given, params, budget))
        except TookTooLong as error:
            return Verdict() if policy.ignores_failures else Verdict((Violation(0, str(error)),))


def _judged_now(
    asked: AdmissionRequest, policy: ValidatingPolicy, given: Given, params: Sequence[Any], before: int
) -> Sequence[Verdict] | None:
    """What a policy says where nobody has to wait for it, as is nearly always so; None if somebody has to."""
    if not policy.is_compiled or asked.call.is_large or before + len(params) > AT_ONCE:
        return None
    try:
        return [policy.judge(given, each) for each in params]
    except cel.Postponed:
        return None


def _act(
    asked: AdmissionRequest,
    policy: ValidatingPolicy,
    binding: Binding,
    verdict: Verdict,
    denials: list[_Denial],
    failures: list[_Denial],
) -> None:
    """Does what a binding wants done about violations."""
    for violation in verdict.violations:
        denial = _Denial(policy.name, binding.name, violation.message, violation.reason, violation.index)
        for action in binding.actions:
            match action:
                case "Deny":
                    denials.append(denial)
                case "Audit":
                    failures.append(denial)
                case "Warn":
                    asked.call.warnings.append(
                        f"Validation failed for ValidatingAdmissionPolicy '{policy.name}' "
                        f"with binding '{binding.name}': {violation.message}"
                    )
    denials.extend(_Denial(policy.name, binding.name, failure) for failure in verdict.failures)


def _refusal(asked: AdmissionRequest, denial: _Denial) -> ApiError:
    reason = denial.reason or "Invalid"
    cause = StatusCause(message=str(denial))
    status = errors.forbidden(asked.call.route.kind, asked.name, str(denial), cause).status
    return ApiError(_CODES.get(reason, 422), reason, status.message, status.details)


def _as_json(failures: list[_Denial], hooks: Sequence[BoundValidating]) -> str:
    actions = {(policy.name, binding.name): binding.actions for policy, bindings in hooks for binding in bindings}
    return json.dumps(
        [
            {
                "message": failure.message,
                "policy": failure.policy,
                "binding": failure.binding,
                "expressionIndex": failure.index,
                "validationActions": actions[failure.policy, failure.binding],
            }
            for failure in failures[:MOST_FAILURES]
        ],
        separators=(",", ":"),
    )
