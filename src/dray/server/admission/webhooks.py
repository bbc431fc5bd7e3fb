"""Asks webhooks about a write: those that refuse all at once, those that change it one after the other."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace

from dray.admission import review
from dray.admission.conditions import ConditionsFailed
from dray.admission.evaluation import Given
from dray.admission.matching import BadSelector
from dray.admission.request import Resource
from dray.admission.webhook import Webhook
from dray.api.meta import Object, Status
from dray.api.status import ApiError
from dray.server import errors
from dray.server.admission.admission_request import AdmissionRequest
from dray.server.admission.patched import patched
from dray.server.admission.policy_runner import PolicyRunner
from dray.server.admission.reinvocation import Reinvocation
from dray.server.admission.slow_policies import TookTooLong
from dray.server.beside import LARGE
from dray.server.patch import json_patch
from dray.server.patch.errors import PatchError
from dray.server.webhooks import WebhookClient, WebhookFailed, find_target
from dray.server.webhooks.targets import NoTarget

__all__ = ["Webhooks"]

MUTATION: Final = "mutation.webhook.admission.k8s.io"
MUTATION_FAILED_OPEN: Final = "failed-open.mutation.webhook.admission.k8s.io"
VALIDATION_FAILED_OPEN: Final = "failed-open.validating.webhook.admission.k8s.io"

ERRORS: Final = range(400, 600)
"""Of HTTP: clients cannot read an answer with another number in its head."""
LONGEST_REASON: Final = 32 * 1024
"""Letters of what a webhook says of a refusal."""

log = logging.getLogger(__name__)


class _Unanswered(Exception):
    """A webhook gave no answer that can be used: what comes of it is up to its failure policy."""


class Webhooks:
    """Asks over the network; nothing else waits meanwhile."""

    def __init__(self, runner: PolicyRunner) -> None:
        self._runner = runner
        self._client = WebhookClient()

    async def close(self) -> None:
        """Closes connections."""
        await self._client.close()

    async def check(self, asked: AdmissionRequest, hooks: Sequence[Webhook]) -> None:
        """Asks all webhooks that are concerned, at once. Raises ApiError with what the first in order says."""
        concerned = [(hook, resource) for hook in hooks if (resource := await self._concerned(asked, hook)) is not None]
        if not concerned:
            return
        answers = await asyncio.gather(
            *(self._check(asked, hook, resource, index) for index, (hook, resource) in enumerate(concerned)),
            return_exceptions=True,
        )
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer

    async def _check(self, asked: AdmissionRequest, hook: Webhook, resource: Resource, index: int) -> None:
        try:
            await self._ask(asked, hook, resource, is_mutating=False)
        except _Unanswered as error:
            self._fail(asked, hook, error, f"{VALIDATION_FAILED_OPEN}/round_0_index_{index}")

    async def mutate(self, asked: AdmissionRequest, hooks: Sequence[Webhook], again: Reinvocation) -> None:
        """Has webhooks change `asked.new`, in order; in a second round only those that want to see what changed since.

        Raises ApiError.
        """
        again.begin(asked.new)
        for index, hook in enumerate(hooks):
            if not again.includes(hook.key):
                continue
            resource = await self._concerned(asked, hook)
            if resource is None:
                continue
            place = f"round_{again.round}_index_{index}"
            before = asked.new
            try:
                verdict = await self._ask(asked, hook, resource, is_mutating=True)
                if verdict.patch:
                    asked.new = await self._changed(asked, hook, resource, verdict)
            except _Unanswered as error:
                self._fail(asked, hook, error, f"{MUTATION_FAILED_OPEN}/{place}")
            is_mutated = asked.new != before
            note = {"configuration": hook.configuration, "webhook": hook.name, "mutated": is_mutated}
            asked.call.annotations[f"{MUTATION}/{place}"] = json.dumps(note, separators=(",", ":"))
            again.invoked(hook.key, has_changed=is_mutated, wants_more=hook.is_reinvoked)
        again.end(asked.new)

    async def _changed(
        self, asked: AdmissionRequest, hook: Webhook, resource: Resource, verdict: review.WebhookAnswer
    ) -> Object:
        if asked.new is None:
            why = f'admission webhook "{hook.name}" attempted to modify the object, which is not supported'
            raise errors.internal(f"{why} for this operation")
        try:
            operations = list(verdict.patch)
            grows = json_patch.may_grow(operations)
            return await patched(
                asked, resource, lambda document: json_patch.apply(document, operations), may_grow=grows
            )
        except PatchError as error:
            raise errors.internal(str(error)) from None

    async def _concerned(self, asked: AdmissionRequest, hook: Webhook) -> Resource | None:
        """The resource that a webhook is to be asked about, if it is. Raises ApiError."""
        try:
            resource = self._runner.matched(asked, hook.matcher)
        except BadSelector as error:
            raise errors.internal(f'webhook "{hook.name}": {error}') from None
        if resource is None or (hook.is_compiled and hook.conditions is None):
            return resource
        try:
            if not await self._holds(asked, hook, resource):
                return None
        except (ConditionsFailed, TookTooLong) as error:
            if hook.ignores_failures:
                return None
            raise errors.forbidden(asked.call.route.kind, asked.name, str(error)) from None
        return resource

    async def _holds(self, asked: AdmissionRequest, hook: Webhook, resource: Resource) -> bool:
        await self._runner.compiled(asked, hook)
        conditions = hook.conditions
        assert conditions is not None
        given = self._runner.given(asked, resource, needs_namespace=False)
        return await self._runner.evaluate(asked, given, lambda given, budget: conditions.hold(given, None, budget))

    async def _ask(
        self, asked: AdmissionRequest, hook: Webhook, resource: Resource, *, is_mutating: bool
    ) -> review.WebhookAnswer:
        """What a webhook says, if it lets the request pass. Raises ApiError if not, and _Unanswered."""
        if asked.request.dry_run and not hook.can_dry_run:
            raise errors.bad_request(f'admission webhook "{hook.name}" does not support dry run')
        version = review.version_of(hook.review_versions)
        if version is None:
            raise _Unanswered(
                f"webhook does not accept known AdmissionReview versions ({', '.join(review.KNOWN_VERSIONS)})"
            )
        uid = asked.engine.new_uid()
        seen = self._seen(asked, resource)
        if asked.call.is_large:
            question = await asked.engine.beside(asked.call, review.question, uid, version, seen)
        else:
            question = review.question(uid, version, seen)
        data = await self._post(asked, hook, question)
        asked.call.is_large = asked.call.is_large or len(data) > LARGE
        read = partial(review.read_answer, data, uid, version, is_mutating=is_mutating)
        try:
            verdict = await asked.engine.beside(asked.call, read) if asked.call.is_large else read()
        except review.BadAnswer as error:
            raise _Unanswered(f"received invalid webhook response: {error}") from None
        for key, value in verdict.annotations.items():
            asked.call.annotations[f"{hook.name}/{key}"] = value
        asked.call.warnings.extend(verdict.warnings)
        if not verdict.allowed:
            raise _rejection(hook, verdict.status)
        return verdict

    def _seen(self, asked: AdmissionRequest, resource: Resource) -> Given:
        return self._runner.given(asked, resource, needs_namespace=False)

    async def _post(self, asked: AdmissionRequest, hook: Webhook, question: bytes) -> bytes:
        turn = asked.call.turn
        if turn is not None:
            turn.step_out()
        try:
            found = find_target(asked.engine, hook.client)
            target = replace(found, url=f"{found.url}?timeout={hook.seconds:g}s")  # as Kubernetes tells them
            return await self._client.post(target, hook.client.ca_bundle, question, hook.seconds)
        except (WebhookFailed, NoTarget) as error:
            raise _Unanswered(f"failed to call webhook: {error}") from None
        finally:
            if turn is not None:
                turn.step_in()

    def _fail(self, asked: AdmissionRequest, hook: Webhook, error: _Unanswered, annotation: str) -> None:
        """Raises ApiError, unless failures of the webhook are to be ignored."""
        message = f'failed calling webhook "{hook.name}": {error}'
        if not hook.ignores_failures:
            raise errors.internal(message)
        log.warning("admission: %s; the request goes on, since its failurePolicy is Ignore", message)
        asked.call.annotations[annotation] = hook.name


def _rejection(hook: Webhook, status: Status | None) -> ApiError:
    status = status or Status()
    denied = f'admission webhook "{hook.name}" denied the request'
    code = status.code if status.code in ERRORS else 400
    why = status.message or status.reason
    told = f"{denied}: {_cut(why)}" if why else f"{denied} without explanation"
    return ApiError(code, _cut(status.reason), told, status.details)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_REASON else f"{text[:LONGEST_REASON]}…"
