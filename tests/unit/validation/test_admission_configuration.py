"""What is wrong with webhooks, admission policies and bindings, and what they are given where they say nothing."""

from __future__ import annotations

from typing import Any

import pytest

from admission_objects import CONFIG_MAPS, binding, mutating_binding, mutating_policy, policy, webhooks
from dray.api.meta import Object
from dray.api.times import Time
from dray.validation import Context
from dray.validation.table import rules_for

NOW = Time.parse("2026-06-01T12:00:00Z")
HOOK = {"clientConfig": {"url": "https://example.com/x"}}


def problems(obj: Object) -> list[str]:
    rules = rules_for(obj)
    ctx = Context(now=NOW)
    return [str(error) for error in rules.validate_create(rules.prepare_create(rules.default(obj, NOW), ctx), ctx)]


def url(text: str) -> dict[str, Any]:
    return {"clientConfig": {"url": text}}


def service(**fields: Any) -> dict[str, Any]:
    return {"clientConfig": {"service": {"name": "s", "namespace": "n"} | fields}}


@pytest.mark.parametrize(
    ("hook", "found"),
    [
        (HOOK, []),
        (HOOK | {"name": "a.b"}, ['webhooks[0].name: Invalid value: "a.b": should be a domain with at least three']),
        (
            HOOK | {"sideEffects": "Some"},
            ['webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None"'],
        ),
        (HOOK | {"timeoutSeconds": 31}, ["webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be"]),
        (HOOK | {"failurePolicy": "x"}, ['webhooks[0].failurePolicy: Unsupported value: "x"']),
        (HOOK | {"admissionReviewVersions": ["v2"]}, ["webhooks[0].admissionReviewVersions: Invalid value: "]),
        (HOOK | {"admissionReviewVersions": []}, ["webhooks[0].admissionReviewVersions: Required value: must specify"]),
        ({"clientConfig": {}}, ["webhooks[0].clientConfig: Required value: exactly one of url or service is required"]),
        (url("http://x"), ["webhooks[0].clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL"]),
        (
            url("https://u@x/?a#b"),
            ['webhooks[0].clientConfig.url: Invalid value: "u": user information', "fragments", "query"],
        ),
        (service(), []),
        (service(port=0), ["webhooks[0].clientConfig.service.port: Invalid value: 0: port is not valid"]),
        (
            service(path="x"),
            ["webhooks[0].clientConfig.service.path: Invalid value: \"x\": must start with a '/'", "segment[0]"],
        ),
        (service(path="/a//b"), ["segment[1] may not be empty"]),
        (
            HOOK | {"rules": [CONFIG_MAPS | {"operations": ["*", "CREATE"]}]},
            ["webhooks[0].rules[0].operations: Invalid"],
        ),
        (
            HOOK | {"rules": [CONFIG_MAPS | {"resources": ["*/*", "pods"]}]},
            ["if '*/*' is present, must not specify other"],
        ),
        (HOOK | {"rules": [CONFIG_MAPS | {"resources": ["pods/*", "pods/log"]}]}, ["if 'pods/*' is present, must not"]),
        (HOOK | {"rules": [CONFIG_MAPS | {"scope": "x"}]}, ["webhooks[0].rules[0].scope: Unsupported value"]),
        (
            HOOK | {"matchConditions": [{"name": "a b", "expression": "1"}]},
            ["must evaluate to bool", "[0].name: Invalid"],
        ),
        (
            HOOK | {"matchConditions": [{"name": "", "expression": "params.x == 1"}]},
            ["undeclared reference to 'params'", "Req"],
        ),
    ],
)
def test_webhooks(hook: dict[str, Any], found: list[str]) -> None:
    told = problems(webhooks("w", hook))
    assert len(told) == len(found), told
    assert all(part in text for part, text in zip(found, told, strict=True)), told


@pytest.mark.parametrize(
    ("obj", "found"),
    [
        (policy("p", "true"), []),
        (policy("p"), ["spec.validations: Required value: validations or auditAnnotations", "spec.auditAnnotations"]),
        (policy("p", "true", rules=()), ["spec.matchConstraints.resourceRules: Required value"]),
        (policy("p", "objet.x"), ['spec.validations[0].expression: Invalid value: "objet.x": compilation failed: ']),
        (policy("p", "1"), ['spec.validations[0].expression: Invalid value: "1": must evaluate to bool']),
        (policy("p", " "), ["spec.validations[0].expression: Required value: expression is not specified"]),
        (policy("p", {"expression": "true", "messageExpression": "1"}), ["[0].messageExpression: Invalid value"]),
        (policy("p", {"expression": "true", "message": "a\nb"}), ["must not contain line breaks"]),
        (policy("p", {"expression": "true", "reason": "Gone"}), ["spec.validations[0].reason: Unsupported value"]),
        (policy("p", "params.x == 1", paramKind={"apiVersion": "v1", "kind": "ConfigMap"}), []),
        (policy("p", "true", paramKind={"apiVersion": "", "kind": "?"}), ["apiVersion: Req", "kind: Inv"]),
        (policy("p", "variables.a > 1", variables=[{"name": "a", "expression": "2"}]), []),
        (policy("p", "variables.b", variables=[{"name": "if", "expression": "2"}]), ["valid CEL identifier", "'b'"]),
        (policy("p", "true", failurePolicy="x"), ['spec.failurePolicy: Unsupported value: "x"']),
        (policy("p", auditAnnotations=[{"key": "k", "valueExpression": "'v'"}] * 2), ["[1].key: Duplicate"]),
        (policy("p", auditAnnotations=[{"key": "k", "valueExpression": "1"}]), ["one of [string null]"]),
        (binding("p"), []),
        (binding("", "Deny", name="b"), ["spec.policyName: Required value"]),
        (binding("p", "Deny", "Warn"), ["must not contain both Deny and Warn"]),
        (binding("p", "Shout"), ["spec.validationActions[0]: Unsupported value"]),
        (binding("p", paramRef={"name": "a"}), ["spec.paramRef.parameterNotFoundAction: Required value"]),
        (binding("p", paramRef={"parameterNotFoundAction": "Deny"}), ["spec.paramRef: Required value: one of name or"]),
        (mutating_policy("m", "Object{}"), []),
        (mutating_policy("m"), ["spec.mutations: Required value: mutations must contain at least one item"]),
        (mutating_policy("m", "'x'"), ["applyConfiguration.expression: Invalid value"]),
        (mutating_policy("m", "['x']"), ["must evaluate to list(JSONPatch)"]),
        (mutating_policy("m", "Object{}", reinvocationPolicy=""), ["spec.reinvocationPolicy: Required value"]),
        (mutating_policy("m", "Object{}", rules=[CONFIG_MAPS | {"operations": ["DELETE"]}]), ["Unsupported value"]),
        (mutating_policy("m", {"patchType": "JSONPatch"}), ["[0].jsonPatch: Required value"]),
        (mutating_binding("m"), []),
    ],
)  # fmt: skip
def test_policies_and_bindings(obj: Object, found: list[str]) -> None:
    told = problems(obj)
    assert len(told) == len(found), told
    assert all(part in text for part, text in zip(found, told, strict=True)), told


def test_what_nobody_said_is_what_kubernetes_says() -> None:
    made: Any = webhooks("w", service() | {"timeoutSeconds": None}, mutating=True)
    hook = rules_for(made).default(made, NOW).webhooks[0]
    assert (hook.failure_policy, hook.match_policy, hook.timeout_seconds) == ("Fail", "Equivalent", 10)
    assert (hook.reinvocation_policy, hook.client_config.service.port, hook.rules[0].scope) == ("Never", 443, "*")
    assert hook.namespace_selector is not None
    other: Any = policy("p", "true")
    spec = rules_for(other).default(other, NOW).spec
    assert (spec.failure_policy, spec.match_constraints.match_policy) == ("Fail", "Equivalent")
