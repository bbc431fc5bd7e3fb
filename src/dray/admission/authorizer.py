"""`authorizer`: expressions ask whether the caller, or a ServiceAccount, may do something else.

authorizer.group("apps").resource("deployments").namespace("a").check("delete").allowed()
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from dray.admission.request import Caller, Request
from dray.api import names
from dray.cel.declarations import Function, function, member
from dray.cel.types import BOOL, STRING, Kind, Type
from dray.cel.values import CelError

__all__ = ["AUTHORIZER", "FUNCTIONS", "RESOURCE_CHECK", "Ask", "Authorizer", "Decision", "ResourceCheck", "of_request"]


def _type(name: str) -> Type:
    return Type(Kind.STRUCT, f"kubernetes.authorization.{name}")


AUTHORIZER: Final = _type("Authorizer")
PATH_CHECK: Final = _type("PathCheck")
GROUP_CHECK: Final = _type("GroupCheck")
RESOURCE_CHECK: Final = _type("ResourceCheck")
DECISION: Final = _type("Decision")


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided, and why."""

    type_name: ClassVar[str] = DECISION.name

    allowed: bool
    reason: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class ResourceCheck:
    """A question about a resource, but for the verb."""

    type_name: ClassVar[str] = RESOURCE_CHECK.name

    who: Authorizer
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    fields: str = ""
    labels: str = ""


Ask = Callable[["Authorizer", str, "ResourceCheck | str"], Decision]
"""Decides whether somebody may use a verb on a resource or a path."""


@dataclass(frozen=True, slots=True)
class Authorizer:
    """Somebody whose rights can be asked for: the caller, or a ServiceAccount (`namespace`, `name`)."""

    type_name: ClassVar[str] = AUTHORIZER.name

    ask: Ask
    caller: Caller
    account: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class _GroupCheck:
    type_name: ClassVar[str] = GROUP_CHECK.name

    who: Authorizer
    group: str


@dataclass(frozen=True, slots=True)
class _PathCheck:
    type_name: ClassVar[str] = PATH_CHECK.name

    who: Authorizer
    path: str


def of_request(who: Authorizer, request: Request) -> ResourceCheck:
    """The question whether somebody may do more to what the request is about."""
    resource = request.resource
    return ResourceCheck(who, resource.group, resource.plural, request.subresource, request.namespace, request.name)


def _path(who: Authorizer, path: str) -> Any:
    return _PathCheck(who, path) if path.strip() else CelError("path must not be empty")


def _account(who: Authorizer, namespace: str, name: str) -> Any:
    if names.validate_dns1123_subdomain(name):
        return CelError("Invalid service account name")
    if names.validate_dns1123_label(namespace):
        return CelError("Invalid service account namespace")
    return replace(who, account=(namespace, name))


def _resource(check: _GroupCheck, resource: str) -> Any:
    return (
        ResourceCheck(check.who, check.group, resource) if resource.strip() else CelError("resource must not be empty")
    )


def _check_path(check: _PathCheck, verb: str) -> Decision:
    return check.who.ask(check.who, verb, check.path)


def _with(field: str) -> Callable[[ResourceCheck, str], ResourceCheck]:
    return lambda check, value: replace(check, **{field: value})  # type: ignore[arg-type]  # a text field, all of them


def _on_resource(name: str, field: str) -> Function:
    id = f"resourcecheck_{name.lower()}"
    return function(name, member(id, (RESOURCE_CHECK, STRING), RESOURCE_CHECK, _with(field)))


FUNCTIONS: Final[tuple[Function, ...]] = (
    function("path", member("authorizer_path", (AUTHORIZER, STRING), PATH_CHECK, _path)),
    function("group", member("authorizer_group", (AUTHORIZER, STRING), GROUP_CHECK, _GroupCheck)),
    function(
        "serviceAccount",
        member("authorizer_serviceaccount", (AUTHORIZER, STRING, STRING), AUTHORIZER, _account),
    ),
    function("resource", member("groupcheck_resource", (GROUP_CHECK, STRING), RESOURCE_CHECK, _resource)),
    *(_on_resource(name, name) for name in ("subresource", "namespace", "name")),
    _on_resource("fieldSelector", "fields"),
    _on_resource("labelSelector", "labels"),
    function(
        "check",
        member("pathcheck_check", (PATH_CHECK, STRING), DECISION, lambda at, verb: at.who.ask(at.who, verb, at.path)),
        member(
            "resourcecheck_check", (RESOURCE_CHECK, STRING), DECISION, lambda at, verb: at.who.ask(at.who, verb, at)
        ),
    ),
    function("allowed", member("decision_allowed", (DECISION,), BOOL, lambda decision: decision.allowed)),
    function("reason", member("decision_reason", (DECISION,), STRING, lambda decision: decision.reason)),
    function("error", member("decision_error", (DECISION,), STRING, lambda decision: decision.error)),
    function("errored", member("decision_errored", (DECISION,), BOOL, lambda decision: bool(decision.error))),
)
