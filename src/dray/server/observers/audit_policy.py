"""Which requests are audited, and how much of them: a Policy of audit.k8s.io/v1. Pure but for reading the file.

request ─▶ the first rule that matches ─▶ level (None, Metadata, Request, RequestResponse), stages that are left out
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from dray.server.routes import Route
from dray.server.security.identity import Identity


class AuditLevel(StrEnum):
    """How much is told of a request."""

    NONE = "None"
    METADATA = "Metadata"
    REQUEST = "Request"
    REQUEST_RESPONSE = "RequestResponse"


class AuditStage(StrEnum):
    """When it is told."""

    REQUEST_RECEIVED = "RequestReceived"
    RESPONSE_STARTED = "ResponseStarted"
    RESPONSE_COMPLETE = "ResponseComplete"
    PANIC = "Panic"


class AuditPolicyError(Exception):
    """A policy cannot be used. The message names the file, the rule and the field."""


class GroupResources(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Resources of a group: all, or those named, or `RESOURCE/*`, `*/SUBRESOURCE`."""

    group: str = ""
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()


class AuditRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What is done with the requests that match all that it names."""

    level: AuditLevel
    users: tuple[str, ...] = ()
    user_groups: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    resources: tuple[GroupResources, ...] = ()
    namespaces: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = msgspec.field(default=(), name="nonResourceURLs")
    omit_stages: tuple[AuditStage, ...] = ()
    omit_managed_fields: bool | None = None


class AuditPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Rules, of which the first that matches counts; what none matches is not audited."""

    api_version: str
    kind: str
    rules: tuple[AuditRule, ...]
    metadata: dict[str, Any] = {}
    omit_stages: tuple[AuditStage, ...] = ()
    omit_managed_fields: bool = False


class WantedAudit(msgspec.Struct, frozen=True):
    """What is wanted of one request."""

    level: AuditLevel
    omit_stages: frozenset[AuditStage] = frozenset()
    omit_managed_fields: bool = False


NOTHING: Final = WantedAudit(AuditLevel.NONE)
DEFAULT: Final = AuditPolicy(
    api_version="audit.k8s.io/v1",
    kind="Policy",
    rules=(
        AuditRule(level=AuditLevel.NONE, non_resource_urls=("/livez*", "/readyz*", "/healthz*", "/metrics*")),
        AuditRule(level=AuditLevel.METADATA),
    ),
    omit_stages=(AuditStage.REQUEST_RECEIVED,),
)
"""Who did what, but for health checks and metrics."""


def wanted_of(policy: AuditPolicy, caller: Identity | None, verb: str, route: Route | None, path: str) -> WantedAudit:
    """What a policy wants of a request; `path` counts for requests without a `route`."""
    for rule in policy.rules:
        if _matches(rule, caller, verb, route, path):
            if rule.level is AuditLevel.NONE:
                return NOTHING
            omit = policy.omit_managed_fields if rule.omit_managed_fields is None else rule.omit_managed_fields
            return WantedAudit(rule.level, frozenset((*policy.omit_stages, *rule.omit_stages)), omit)
    return NOTHING


def read_policy(path: Path) -> AuditPolicy:
    """The policy in a file. Raises AuditPolicyError."""
    try:
        policy = msgspec.convert(yaml.safe_load(path.read_bytes()), AuditPolicy)
    except OSError as error:
        raise AuditPolicyError(f"cannot read audit policy {path}: {error.strerror}.") from None
    except yaml.YAMLError as error:
        raise AuditPolicyError(f"audit policy {path} is not YAML: {' '.join(str(error).split())}") from None
    except msgspec.ValidationError as error:
        raise AuditPolicyError(f"audit policy {path}: {error}") from None
    problem = next(_problems(policy), "")
    if problem:
        raise AuditPolicyError(f"audit policy {path}: {problem}")
    return policy


def _problems(policy: AuditPolicy) -> Iterator[str]:
    if (policy.api_version, policy.kind) != ("audit.k8s.io/v1", "Policy"):
        yield f"it is a {policy.kind} of {policy.api_version}, not a Policy of audit.k8s.io/v1"
    if not policy.rules:
        yield "rules: at least one is needed, else nothing is audited"
    for number, rule in enumerate(policy.rules):
        where = f"rules[{number}]"
        if rule.non_resource_urls and (rule.resources or rule.namespaces):
            yield f"{where}: a rule is about nonResourceURLs, or about resources and namespaces, not both"
        for url in rule.non_resource_urls:
            if url != "*" and (not url.startswith("/") or "*" in url[:-1]):
                yield f'{where}.nonResourceURLs: {url!r} must be "*", or begin with "/" and have "*" only at its end'
        for group in rule.resources:
            if "/" in group.group:
                yield f"{where}.resources: {group.group!r} must be the name of a group, without its version"
            if group.resource_names and not group.resources:
                yield f"{where}.resources: resourceNames need resources"


def _matches(rule: AuditRule, caller: Identity | None, verb: str, route: Route | None, path: str) -> bool:
    if rule.users and (caller is None or caller.user not in rule.users):
        return False
    if rule.user_groups and (caller is None or not any(group in rule.user_groups for group in caller.groups)):
        return False
    if rule.verbs and verb not in rule.verbs:
        return False
    if rule.namespaces or rule.resources:
        return route is not None and _matches_resource(rule, route)
    if rule.non_resource_urls:
        return route is None and any(_matches_path(url, path) for url in rule.non_resource_urls)
    return True


def _matches_path(url: str, path: str) -> bool:
    return path.startswith(url[:-1]) if url.endswith("*") else path == url


def _matches_resource(rule: AuditRule, route: Route) -> bool:
    if rule.namespaces and route.namespace not in rule.namespaces:
        return False
    return not rule.resources or any(_is_of(group, route) for group in rule.resources)


def _is_of(group: GroupResources, route: Route) -> bool:
    if group.group not in (route.kind.group, "*"):
        return False
    if not group.resources:
        return True
    if group.resource_names and route.name not in group.resource_names:
        return False
    resource, sub = route.kind.plural, route.subresource
    names = {"*", f"{resource}/{sub}" if sub else resource, f"{resource}/*"}
    if sub:
        names.add(f"*/{sub}")
    return not names.isdisjoint(group.resources)
