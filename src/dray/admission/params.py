"""Which objects parameterise a policy: those of its kind that a binding names or selects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from dray.api.generated.admissionregistration import ParamKind, ParamRef
from dray.api.labels import LabelSelector, SelectorError

__all__ = ["BadParams", "ParamSource", "UnknownParamKind", "collect_params"]


class BadParams(Exception):
    """The parameters of a binding cannot be found, or must not be missing."""


class UnknownParamKind(BadParams):
    """Nothing of the kind of a policy's parameters is served, whatever a binding says."""


class ParamSource(Protocol):
    """Where parameters are looked up."""

    def is_namespaced(self, kind: ParamKind) -> bool | None:
        """Whether objects of a kind are in namespaces; None if there is no such kind."""
        ...

    def get(self, kind: ParamKind, namespace: str, name: str) -> Any:
        """The object of a name, in the version of the kind; None if there is none."""
        ...

    def list(self, kind: ParamKind, namespace: str) -> Sequence[Any]:
        """All objects of a kind in a namespace."""
        ...


def collect_params(kind: ParamKind, reference: ParamRef, namespace: str, source: ParamSource) -> Sequence[Any]:
    """The objects that the policy is evaluated with, one after the other. Raises BadParams."""
    is_namespaced = source.is_namespaced(kind)
    if is_namespaced is None:
        named = f"{kind.api_version}, Kind={kind.kind}"
        raise UnknownParamKind(f"failed to find resource referenced by paramKind: '{named}'")
    if not is_namespaced and reference.namespace:
        raise BadParams("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
    place = (reference.namespace or namespace) if is_namespaced else ""
    if is_namespaced and not place:
        raise BadParams("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
    found = _found(kind, reference, place, source)
    if not found and reference.parameter_not_found_action == "Deny":
        raise BadParams("no params found for policy binding with `Deny` parameterNotFoundAction")
    return found


def _found(kind: ParamKind, reference: ParamRef, place: str, source: ParamSource) -> Sequence[Any]:
    if reference.name:
        one = source.get(kind, place, reference.name)
        return () if one is None else (one,)
    if reference.selector is None:
        raise BadParams("one of name or selector must be provided")
    try:
        selector = LabelSelector.of(reference.selector)
    except SelectorError as error:
        raise BadParams(str(error)) from None
    return [obj for obj in source.list(kind, place) if selector.matches(obj.metadata.labels)]
