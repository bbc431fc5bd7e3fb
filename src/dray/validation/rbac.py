"""Roles and the bindings that give them to subjects."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from dray.api.field import invalid, not_supported, required, too_many
from dray.api.generated.rbac import ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject
from dray.api.registry import RBAC_GROUP
from dray.api.times import Time
from dray.validation import check, names
from dray.validation.context import Context, Errors
from dray.validation.label_selectors import validate_label_selector
from dray.validation.metadata import PATH_SEGMENT
from dray.validation.rules import Rules

MOST_SUBJECTS: Final = 1000
"""Of a binding: each is taken into the index of who may do what, and out again, before anybody's next request."""


def _check_role(errors: Errors, new: Role, _old: Role | None, _ctx: Context) -> None:
    for index, rule in enumerate(new.rules):
        _validate_rule(errors, rule, f"rules[{index}]", namespaced=True)


def _check_cluster_role(errors: Errors, new: ClusterRole, _old: ClusterRole | None, _ctx: Context) -> None:
    for index, rule in enumerate(new.rules):
        _validate_rule(errors, rule, f"rules[{index}]", namespaced=False)
    if new.aggregation_rule is not None:
        path = "aggregationRule.clusterRoleSelectors"
        if not new.aggregation_rule.cluster_role_selectors:
            errors.append(required(path))
        for index, selector in enumerate(new.aggregation_rule.cluster_role_selectors):
            validate_label_selector(errors, selector, f"{path}[{index}]")


def _validate_rule(errors: Errors, rule: PolicyRule, path: str, *, namespaced: bool) -> None:
    """A rule is about resources or, in cluster roles, about other URLs."""
    if not rule.verbs:
        errors.append(required(f"{path}.verbs"))
    if rule.non_resource_urls:
        if namespaced:
            detail = "namespaced rules cannot apply to non-resource URLs"
            errors.append(invalid(f"{path}.nonResourceURLs", rule.non_resource_urls, detail))
        if rule.api_groups or rule.resources or rule.resource_names:
            detail = "a rule cannot apply to both resources and non-resource URLs"
            errors.append(invalid(f"{path}.nonResourceURLs", rule.non_resource_urls, detail))
        return
    if not rule.api_groups:
        errors.append(required(f"{path}.apiGroups"))
    if not rule.resources:
        errors.append(required(f"{path}.resources"))


def _default_binding(obj: Any, _now: Time) -> Any:
    if not obj.role_ref.api_group:
        obj = replace(obj, role_ref=replace(obj.role_ref, api_group=RBAC_GROUP))
    return replace(obj, subjects=tuple(_default_subject(subject) for subject in obj.subjects))


def _default_subject(subject: Subject) -> Subject:
    if subject.api_group or subject.kind not in ("User", "Group"):
        return subject
    return replace(subject, api_group=RBAC_GROUP)


def _check_binding(
    errors: Errors, new: RoleBinding | ClusterRoleBinding, old: RoleBinding | ClusterRoleBinding | None, _ctx: Context
) -> None:
    namespaced = isinstance(new, RoleBinding)
    _validate_reference(errors, new.role_ref, ("ClusterRole", "Role") if namespaced else ("ClusterRole",))
    if len(new.subjects) > MOST_SUBJECTS and (old is None or new.subjects != old.subjects):
        errors.append(too_many("subjects", len(new.subjects), MOST_SUBJECTS))
    for index, subject in enumerate(new.subjects):
        _validate_subject(errors, subject, f"subjects[{index}]", namespaced=namespaced)
    if old is not None and new.role_ref != old.role_ref:
        errors.append(invalid("roleRef", new.role_ref.name, "cannot change roleRef"))


def _validate_reference(errors: Errors, reference: RoleRef, kinds: tuple[str, ...]) -> None:
    check.one_of(errors, "roleRef.apiGroup", reference.api_group, (RBAC_GROUP,))
    check.one_of(errors, "roleRef.kind", reference.kind, kinds)
    check.required_name(errors, "roleRef.name", reference.name, names.path_segment)


def _validate_subject(errors: Errors, subject: Subject, path: str, *, namespaced: bool) -> None:
    if not subject.name:
        errors.append(required(f"{path}.name"))
    match subject.kind:
        case "ServiceAccount":
            if subject.name:
                check.name(errors, f"{path}.name", subject.name, names.dns_subdomain)
            check.one_of(errors, f"{path}.apiGroup", subject.api_group, ("",))
            if not subject.namespace and not namespaced:
                errors.append(required(f"{path}.namespace"))
        case "User" | "Group":
            check.one_of(errors, f"{path}.apiGroup", subject.api_group, (RBAC_GROUP,))
        case other:
            errors.append(not_supported(f"{path}.kind", other, ("Group", "ServiceAccount", "User")))


RULES: Final = {
    "Role": Rules(name=PATH_SEGMENT, check=_check_role),
    "ClusterRole": Rules(namespaced=False, name=PATH_SEGMENT, check=_check_cluster_role),
    "RoleBinding": Rules(name=PATH_SEGMENT, default=_default_binding, check=_check_binding),
    "ClusterRoleBinding": Rules(namespaced=False, name=PATH_SEGMENT, default=_default_binding, check=_check_binding),
}
