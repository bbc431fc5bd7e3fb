"""Policies, bindings and webhooks, as tests write them."""

from __future__ import annotations

from typing import Any

import builders
from dray.api.meta import Object
from local_server import typed

GROUP = "admissionregistration.k8s.io/v1"
EVERYTHING = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
CONFIG_MAPS = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE"],
    "resources": ["configmaps"],
}


def policy(name: str, *validations: Any, rules: Any = (CONFIG_MAPS,), **spec: Any) -> Object:
    """A ValidatingAdmissionPolicy; a validation is an expression, or a whole one."""
    written = [{"expression": each} if isinstance(each, str) else each for each in validations]
    constraints = {"resourceRules": list(rules), **spec.pop("matchConstraints", {})}
    return typed(
        {
            "apiVersion": GROUP,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {"validations": written, "matchConstraints": constraints, **spec},
        }
    )


def binding(policy: str, *actions: str, name: str = "", **spec: Any) -> Object:
    """A ValidatingAdmissionPolicyBinding, which denies unless it is told otherwise."""
    return typed(
        {
            "apiVersion": GROUP,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name or f"{policy}-everywhere"},
            "spec": {"policyName": policy, "validationActions": list(actions or ("Deny",)), **spec},
        }
    )


def config_map(name: str = "c", namespace: str = "default", **data: str) -> Object:
    """A ConfigMap."""
    metadata = {"name": name, "namespace": namespace}
    return typed({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


def deployment(name: str, replicas: int = 1) -> Object:
    """A Deployment of one container."""
    return typed(builders.workload(name, replicas))


def webhooks(name: str, *hooks: dict[str, Any], mutating: bool = False) -> Object:
    """A configuration of webhooks, which are asked about ConfigMaps unless they say otherwise."""
    usual = {"admissionReviewVersions": ["v1"], "sideEffects": "None", "rules": [CONFIG_MAPS], "timeoutSeconds": 5}
    written = [{"name": f"{name}-{index}.example.com"} | usual | hook for index, hook in enumerate(hooks)]
    kind = "MutatingWebhookConfiguration" if mutating else "ValidatingWebhookConfiguration"
    return typed({"apiVersion": GROUP, "kind": kind, "metadata": {"name": name}, "webhooks": written})


def mutating_policy(name: str, *mutations: str | dict[str, Any], rules: Any = (CONFIG_MAPS,), **spec: Any) -> Object:
    """A MutatingAdmissionPolicy; an expression that begins with a bracket makes a JSON patch."""
    written = [each if isinstance(each, dict) else _mutation(each) for each in mutations]
    usual = {"reinvocationPolicy": "Never", "matchConstraints": {"resourceRules": list(rules)}}
    return typed(
        {
            "apiVersion": GROUP,
            "kind": "MutatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": usual | {"mutations": written, **spec},
        }
    )


def _mutation(expression: str) -> dict[str, Any]:
    if expression.startswith("["):
        return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def mutating_binding(policy: str, name: str = "", **spec: Any) -> Object:
    """A MutatingAdmissionPolicyBinding."""
    return typed(
        {
            "apiVersion": GROUP,
            "kind": "MutatingAdmissionPolicyBinding",
            "metadata": {"name": name or f"{policy}-everywhere"},
            "spec": {"policyName": policy, **spec},
        }
    )
