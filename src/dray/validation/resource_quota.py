"""ResourceQuota: which resources it limits, and for which pods."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from dray.api.field import invalid, required
from dray.api.generated.core import ResourceQuota, ResourceQuotaSpec
from dray.api.times import Time
from dray.validation.context import Context, Errors
from dray.validation.pod_defaults import in_thousandths
from dray.validation.resource_amounts import is_standard_for_quota, quota_resource, validate_amounts
from dray.validation.rules import Rules

_POD_COUNT: Final = frozenset(("pods",))
_POD: Final = _POD_COUNT | {f"{prefix}{name}" for prefix in ("", "limits.", "requests.") for name in ("cpu", "memory")}
_VOLUME: Final = frozenset(("persistentvolumeclaims", "requests.storage"))

# Scope → the standard resources that it can go with.
SCOPES: Final = {
    "Terminating": _POD,
    "NotTerminating": _POD,
    "BestEffort": _POD_COUNT,
    "NotBestEffort": _POD,
    "PriorityClass": _POD,
    "CrossNamespacePodAffinity": _POD,
    "VolumeAttributesClass": _VOLUME,
}
CONFLICTS: Final = (frozenset(("BestEffort", "NotBestEffort")), frozenset(("Terminating", "NotTerminating")))
_EXISTS_ONLY: Final = SCOPES.keys() - {"PriorityClass", "VolumeAttributesClass"}


def _default(obj: ResourceQuota, _now: Time) -> ResourceQuota:
    hard = in_thousandths(obj.spec.hard)
    return obj if hard is obj.spec.hard else replace(obj, spec=replace(obj.spec, hard=hard))


def _check(errors: Errors, new: ResourceQuota, old: ResourceQuota | None, _ctx: Context) -> None:
    spec = new.spec
    validate_amounts(errors, spec.hard, "spec.hard", quota_resource)
    _validate_scopes(errors, spec, spec.scopes, "spec.scopes", "spec.scopes")
    if spec.scope_selector is not None:
        _validate_selector(errors, spec)
    if old is not None and set(spec.scopes) ^ set(old.spec.scopes):
        errors.append(invalid("spec.scopes", spec.scopes, "field is immutable"))


def _validate_scopes(
    errors: Errors, spec: ResourceQuotaSpec, scopes: tuple[str, ...], path: str, scope_path: str
) -> None:
    standard = [name for name in spec.hard if is_standard_for_quota(name)]
    unfit = {scope for scope in SCOPES.keys() & set(scopes) if any(name not in SCOPES[scope] for name in standard)}
    for scope in scopes:
        if scope not in SCOPES:
            errors.append(invalid(scope_path, scope, "unsupported scope"))
        elif scope in unfit:
            errors.append(invalid(path, scope, "the scope does not go with all of the resources"))
    if any(pair <= set(scopes) for pair in CONFLICTS):
        errors.append(invalid(path, scopes, "scopes that exclude each other"))


def _validate_selector(errors: Errors, spec: ResourceQuotaSpec) -> None:
    path = "spec.scopeSelector.matchExpressions"
    requirements = spec.scope_selector.match_expressions if spec.scope_selector is not None else ()
    scopes = tuple(requirement.scope_name for requirement in requirements)
    _validate_scopes(errors, spec, scopes, path, f"{path}.scopeName")
    for requirement in requirements:
        if requirement.scope_name in _EXISTS_ONLY and requirement.operator != "Exists":
            errors.append(invalid(f"{path}.operator", requirement.operator, "must be Exists for this scope"))
        match requirement.operator:
            case "In" | "NotIn":
                if not requirement.values:
                    errors.append(required(f"{path}.values", "must be given with the operators In and NotIn"))
            case "Exists" | "DoesNotExist":
                if requirement.values:
                    errors.append(invalid(f"{path}.values", requirement.values, "must be empty with this operator"))
            case other:
                errors.append(invalid(f"{path}.operator", other, "not a valid selector operator"))


def _check_status(errors: Errors, new: ResourceQuota, _old: ResourceQuota, _ctx: Context) -> None:
    validate_amounts(errors, new.status.hard, "status.hard", quota_resource)
    validate_amounts(errors, new.status.used, "status.used", quota_resource)


RULES: Final = {
    "ResourceQuota": Rules(
        has_status=True, status_guards_metadata=False, default=_default, check=_check, check_status=_check_status
    )
}
