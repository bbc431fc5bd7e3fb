"""Columns for what changes and refuses requests, and for what the server itself is configured with."""

from __future__ import annotations

from typing import Any

from dray.server.answers.tables.columns import AGE, NAME, NONE, UNSET, Column, text
from dray.server.answers.tables.networking import selector_text


def _param_kind(policy: Any) -> str:
    found = policy.spec.param_kind
    return UNSET if found is None else f"{found.api_version}/{found.kind}"


def _param(binding: Any) -> str:
    found = binding.spec.param_ref
    if found is None:
        return UNSET
    if found.name:
        return f"{found.namespace or '*'}/{found.name}"
    return selector_text(found.selector)


def _missing_level(schema: Any) -> str:
    found = [condition.status for condition in schema.status.conditions if condition.type == "Dangling"]
    return found[0] if found else "?"


def _limited(level: Any) -> Any:
    return level.spec.limited


def _queuing(name: str) -> Any:
    def read(level: Any) -> Any:
        limited = _limited(level)
        queuing = None if limited is None or limited.limit_response is None else limited.limit_response.queuing
        return NONE if queuing is None else getattr(queuing, name)

    return read


def _shares(level: Any) -> Any:
    limited = _limited(level)
    return NONE if limited is None else limited.nominal_concurrency_shares


_WEBHOOKS = (NAME, text("Webhooks", lambda c: len(c.webhooks), description="How many are asked."), AGE)
_BINDING = (
    NAME,
    text("PolicyName", lambda b: b.spec.policy_name, description="The policy that is asked."),
    text("ParamRef", _param, description="What it is asked with."),
    AGE,
)

COLUMNS: dict[str, tuple[Column, ...]] = {
    "MutatingWebhookConfiguration": _WEBHOOKS,
    "ValidatingWebhookConfiguration": _WEBHOOKS,
    "ValidatingAdmissionPolicy": (
        NAME,
        text("Validations", lambda p: len(p.spec.validations), description="How many expressions decide."),
        text("ParamKind", _param_kind, description="The kind of its parameters."),
        AGE,
    ),
    "MutatingAdmissionPolicy": (
        NAME,
        text("Mutations", lambda p: len(p.spec.mutations), description="How many expressions change."),
        text("ParamKind", _param_kind, description="The kind of its parameters."),
        AGE,
    ),
    "ValidatingAdmissionPolicyBinding": _BINDING,
    "MutatingAdmissionPolicyBinding": _BINDING,
    "RuntimeClass": (NAME, text("Handler", lambda c: c.handler, description="Who runs its pods."), AGE),
    "FlowSchema": (
        NAME,
        text("PriorityLevel", lambda s: s.spec.priority_level_configuration.name, description="Where requests go."),
        text("MatchingPrecedence", lambda s: s.spec.matching_precedence, description="Which is asked first."),
        text(
            "DistinguisherMethod",
            lambda s: NONE if s.spec.distinguisher_method is None else s.spec.distinguisher_method.type,
            description="How flows are told apart.",
        ),
        AGE,
        text("MissingPL", _missing_level, description="Whether there is no such level."),
    ),
    "PriorityLevelConfiguration": (
        NAME,
        text("Type", lambda level: level.spec.type, description="Limited or Exempt."),
        text("NominalConcurrencyShares", _shares, description="Its share of the server."),
        text("Queues", _queuing("queues"), description="Queues."),
        text("HandSize", _queuing("hand_size"), description="Queues of each flow."),
        text("QueueLengthLimit", _queuing("queue_length_limit"), description="Requests of each queue."),
        AGE,
    ),
}
