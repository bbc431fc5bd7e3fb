"""Has MutatingAdmissionPolicies change what is written."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from dray.admission.conditions import ConditionsFailed
from dray.admission.evaluation import ExpressionFailed, OutOfBudget
from dray.admission.mutating_policy import MutatingPolicy, WantedChange
from dray.admission.request import Resource
from dray.api.meta import Object, StatusCause
from dray.api.status import ApiError
from dray.server import errors
from dray.server.admission.admission_request import AdmissionRequest
from dray.server.admission.patched import patched
from dray.server.admission.policy_runner import PolicyRunner, Unusable
from dray.server.admission.reinvocation import Reinvocation
from dray.server.admission.slow_policies import TookTooLong
from dray.server.indexes.admission_configuration import BoundMutating
from dray.server.patch import json_patch
from dray.server.patch.applied_changes import merge_applied
from dray.server.patch.errors import FailedTest, PatchError

__all__ = ["MutatingPolicies"]

AT_ONCE = 4
"""Changes that policies make to one object before others get a turn of the loop."""
_FAILURES = (ConditionsFailed, ExpressionFailed, OutOfBudget, PatchError, TookTooLong)
"""What is up to the failure policy."""


class _Problem(NamedTuple):
    """Why a request is refused: a policy that could not be configured, or an expression that failed (Invalid)."""

    message: str
    reason: str


@dataclass(frozen=True, slots=True)
class _Invocation:
    """A policy that is concerned, with one object as its parameters."""

    policy: MutatingPolicy
    binding: str
    params: Any
    resource: Resource

    @property
    def key(self) -> tuple[str, ...]:
        meta = None if self.params is None else self.params.metadata
        place = () if meta is None else (meta.namespace, meta.name)
        return (self.policy.name, self.binding, *place)


class MutatingPolicies:
    """Changes `asked.new`, policy by policy, mutation by mutation."""

    def __init__(self, runner: PolicyRunner) -> None:
        self._runner = runner

    async def mutate(self, asked: AdmissionRequest, hooks: Sequence[BoundMutating], again: Reinvocation) -> None:
        """Has all policies that are concerned change the object. Raises ApiError."""
        if asked.new is None:
            return
        again.begin(asked.new)
        problems: list[_Problem] = []
        for number, each in enumerate(await self._invocations(asked, hooks, problems), 1):
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)  # others have their turn: there may be many parameters
            if again.includes(each.key):
                try:
                    await self._invoke(asked, each, again)
                except _FAILURES as error:
                    _note(each.policy, each.binding, str(error), problems, "Invalid")
        again.end(asked.new)
        if problems:
            raise _refusal(asked, problems)

    async def _invocations(
        self, asked: AdmissionRequest, hooks: Sequence[BoundMutating], problems: list[_Problem]
    ) -> list[_Invocation]:
        """Who is concerned, before anybody has changed anything; adds whom nobody can ask to `problems`."""
        found: list[_Invocation] = []
        for policy, bindings in hooks:
            for each in await self._runner.concerns(asked, policy, bindings):
                if isinstance(each, Unusable):
                    _note(policy, each.binding, each.message, problems)
                else:
                    found += [_Invocation(policy, each.binding.name, one, each.resource) for one in each.params]
        return found

    async def _invoke(self, asked: AdmissionRequest, each: _Invocation, again: Reinvocation) -> None:
        """Raises what is up to the failure policy, and ApiError."""
        runner, policy = self._runner, each.policy
        await runner.compiled(asked, policy)
        given = runner.given(asked, each.resource)
        is_met = await runner.evaluate(asked, given, lambda given, budget: policy.is_met(given, each.params, budget))
        if not is_met:
            return
        before = asked.new
        for index in range(len(policy)):
            change = await runner.evaluate(
                asked, runner.given(asked, each.resource), partial(policy.change, index, each.params)
            )
            asked.new = await _changed(asked, each.resource, change)
        again.invoked(each.key, has_changed=asked.new != before, wants_more=policy.is_reinvoked)


async def _changed(asked: AdmissionRequest, resource: Resource, change: WantedChange) -> Object:
    """Raises PatchError, and ApiError."""
    assert asked.new is not None
    if change.operations is not None:
        operations = change.operations
        try:
            grows = json_patch.may_grow(operations)
            return await patched(
                asked, resource, lambda document: json_patch.apply(document, operations), may_grow=grows, is_strict=True
            )
        except FailedTest:  # a patch whose test fails is no patch for this object
            return asked.new
    applied = change.applied or {}
    definition = asked.definition_of(resource)
    return await patched(asked, resource, lambda document: merge_applied(document, applied, definition), may_grow=False)


def _note(
    policy: MutatingPolicy, binding: str, message: str, problems: list[_Problem], reason: str = "Forbidden"
) -> None:
    if policy.ignores_failures:
        return
    who = f"policy '{policy.name}' with binding '{binding}'" if binding else f'policy "{policy.name}"'
    problems.append(_Problem(f"{who} denied request: {message}", reason))


def _refusal(asked: AdmissionRequest, problems: list[_Problem]) -> ApiError:
    causes = [StatusCause(message=problem.message) for problem in problems]
    details = errors.forbidden(asked.call.route.kind, asked.name, "", *causes).status.details
    return ApiError(403, problems[0].reason, problems[0].message, details)
