"""What the expressions of policies and webhooks can name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from dray.admission import authorizer
from dray.cel.declarations import function, overload
from dray.cel.environment import ANY_FIELD, FUNCTIONS, Environment, merge
from dray.cel.types import BOOL, DYN, INT, STRING, Kind, Type, list_of, map_of

__all__ = ["APPLY", "JSON_PATCH", "Offers", "environment"]

_STRINGS: Final = list_of(STRING)
_LABELS: Final = map_of(STRING, STRING)


def _struct(name: str) -> Type:
    return Type(Kind.STRUCT, f"kubernetes.{name}")


REQUEST: Final = _struct("AdmissionRequest")
NAMESPACE: Final = _struct("Namespace")
VARIABLES: Final = _struct("variables")
APPLY: Final = Type(Kind.STRUCT, "Object")
JSON_PATCH: Final = Type(Kind.STRUCT, "JSONPatch")

_KIND: Final = _struct("GroupVersionKind")
_RESOURCE: Final = _struct("GroupVersionResource")
_USER: Final = _struct("UserInfo")

_STRUCTS: Final[dict[str, dict[str, Type]]] = {
    _KIND.name: {"group": STRING, "version": STRING, "kind": STRING},
    _RESOURCE.name: {"group": STRING, "version": STRING, "resource": STRING},
    _USER.name: {"username": STRING, "uid": STRING, "groups": _STRINGS, "extra": map_of(STRING, _STRINGS)},
    REQUEST.name: {
        "kind": _KIND,
        "resource": _RESOURCE,
        "subResource": STRING,
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        "requestSubResource": STRING,
        "name": STRING,
        "namespace": STRING,
        "operation": STRING,
        "userInfo": _USER,
        "dryRun": BOOL,
        "options": DYN,
    },
    NAMESPACE.name: {
        "metadata": _struct("NamespaceMetadata"),
        "spec": _struct("NamespaceSpec"),
        "status": _struct("NamespaceStatus"),
    },
    _struct("NamespaceSpec").name: {"finalizers": _STRINGS},
    _struct("NamespaceStatus").name: {"conditions": list_of(_struct("NamespaceCondition")), "phase": STRING},
    _struct("NamespaceCondition").name: {
        "status": STRING,
        "type": STRING,
        "lastTransitionTime": DYN,
        "message": STRING,
        "reason": STRING,
    },
    _struct("NamespaceMetadata").name: {
        "name": STRING,
        "generateName": STRING,
        "namespace": STRING,
        "labels": _LABELS,
        "annotations": _LABELS,
        "UID": STRING,
        "creationTimestamp": DYN,
        "deletionGracePeriodSeconds": INT,
        "deletionTimestamp": DYN,
        "generation": INT,
        "resourceVersion": STRING,
        "finalizers": _STRINGS,
    },
}
_MADE: Final[dict[str, dict[str, Type]]] = {
    APPLY.name: {ANY_FIELD: DYN},
    JSON_PATCH.name: {"op": STRING, "path": STRING, "from": STRING, "value": DYN},
}


def _escape_key(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


_ESCAPE: Final = function(
    "jsonpatch.escapeKey", overload("string_jsonpatch_escapeKey_string", (STRING,), STRING, _escape_key)
)
_WITH_AUTHORIZER: Final = merge(tuple(FUNCTIONS.values()), authorizer.FUNCTIONS)
_WITH_PATCHES: Final = {**_WITH_AUTHORIZER, **merge((_ESCAPE,))}

Offers = frozenset[str]
"""What an expression is offered besides the usual: `params`, `authorizer`, `variables`, `patches`."""


def environment(
    offers: Offers,
    variables: Mapping[str, Type] | None,
    *,
    object_type: Type = DYN,
    params_type: Type = DYN,
    structs: Mapping[str, Mapping[str, Type]] | None = None,
) -> Environment:
    """The environment of an expression. The types are those that a type check knows of; nobody else does."""
    if not variables and structs is None and object_type is DYN:
        return _usual(offers)
    return _environment(offers, variables or {}, object_type, params_type, structs or {})


@cache
def _usual(offers: Offers) -> Environment:
    return _environment(offers, {}, DYN, DYN, {})


def _environment(
    offers: Offers,
    variables: Mapping[str, Type],
    object_type: Type,
    params_type: Type,
    structs: Mapping[str, Mapping[str, Type]],
) -> Environment:
    named: dict[str, Type] = {
        "object": object_type,
        "oldObject": object_type,
        "request": REQUEST,
        "namespaceObject": NAMESPACE,
    }
    if "variables" in offers:
        named["variables"] = VARIABLES
    if "params" in offers:
        named["params"] = params_type
    if "authorizer" in offers:
        named["authorizer"] = authorizer.AUTHORIZER
        named["authorizer.requestResource"] = authorizer.RESOURCE_CHECK
    makes_patches = "patches" in offers
    known = {**_STRUCTS, **structs, VARIABLES.name: dict(variables)}
    if makes_patches:
        known |= _MADE
    functions = _WITH_PATCHES if makes_patches else _WITH_AUTHORIZER
    return Environment(named, known, frozenset(_MADE) if makes_patches else frozenset(), functions)
