"""What both sorts of admission policies and their bindings must be like."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, TypeVar

from msgspec.structs import replace

from dray.admission.environments import Offers
from dray.api.field import forbidden, invalid, required
from dray.api.generated.admissionregistration import (
    MutatingAdmissionPolicy,
    MutatingAdmissionPolicyBinding,
    ParamKind,
    ParamRef,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
    Variable,
)
from dray.api.registry import split_api_version
from dray.api.times import Time
from dray.cel.types import Type
from dray.validation import check, names
from dray.validation.admission_rules import default_match_resources, validate_expression
from dray.validation.context import Errors
from dray.validation.label_selectors import validate_label_selector

AnyPolicy = TypeVar("AnyPolicy", MutatingAdmissionPolicy, ValidatingAdmissionPolicy)
AnyBinding = TypeVar("AnyBinding", MutatingAdmissionPolicyBinding, ValidatingAdmissionPolicyBinding)

NOT_FOUND_ACTIONS: Final = ("Allow", "Deny")
_IDENTIFIER: Final = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
_RESERVED: Final = frozenset(
    (
        "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import",
        "let", "loop", "package", "namespace", "return", "var", "void", "while",
    )
)  # fmt: skip


def default_policy(obj: AnyPolicy, _now: Time) -> AnyPolicy:
    """Whom it concerns, and what follows if it cannot be asked."""
    spec = obj.spec
    constraints = default_match_resources(spec.match_constraints)
    return replace(obj, spec=replace(spec, failure_policy=spec.failure_policy or "Fail", match_constraints=constraints))


def default_binding(obj: AnyBinding, _now: Time) -> AnyBinding:
    """Whom it concerns."""
    return replace(obj, spec=replace(obj.spec, match_resources=default_match_resources(obj.spec.match_resources)))


def validate_param_kind(errors: Errors, kind: ParamKind | None) -> None:
    """The kind of a policy's parameters, if it has any."""
    if kind is None:
        return
    place = "spec.paramKind.apiVersion"
    if not kind.api_version:
        errors.append(required(place))
    elif kind.api_version.count("/") > 1:
        errors.append(invalid(place, kind.api_version, f"unexpected GroupVersion string: {kind.api_version}"))
    else:
        group, version = split_api_version(kind.api_version)
        if group:
            _joined(errors, place, group, names.dns_subdomain)
        if not version:
            errors.append(invalid(place, kind.api_version, "version must be specified"))
        else:
            _joined(errors, place, version, names.dns_1035_label)
    if not kind.kind:
        errors.append(required("spec.paramKind.kind"))
        return
    problems = list(names.dns_1035_label(kind.kind.lower()))
    if problems:
        what = "may have mixed case, but should otherwise match: " + ",".join(problems)
        errors.append(invalid("spec.paramKind.kind", kind.kind, what))


def _joined(errors: Errors, path: str, value: str, rule: names.Rule) -> None:
    problems = list(rule(value))
    if problems:
        errors.append(invalid(path, value, ",".join(problems)))


def validate_param_ref(errors: Errors, reference: ParamRef | None) -> None:
    """Which objects are a policy's parameters: one by its name, or all that a selector selects."""
    if reference is None:
        return
    path, both = "spec.paramRef", "name and selector are mutually exclusive"
    if reference.name:
        check.name(errors, f"{path}.name", reference.name, names.path_segment)
        if reference.selector is not None:
            errors.append(forbidden(f"{path}.name", both))
    if reference.selector is not None:
        validate_label_selector(errors, reference.selector, f"{path}.selector")
        if reference.name:
            errors.append(forbidden(f"{path}.selector", both))
    if not reference.name and reference.selector is None:
        errors.append(required(path, "one of name or selector must be specified"))
    action = reference.parameter_not_found_action or ""
    check.required_one_of(errors, f"{path}.parameterNotFoundAction", action, NOT_FOUND_ACTIONS)


def validate_policy_name(errors: Errors, name: str) -> None:
    """The policy of a binding."""
    check.required_name(errors, "spec.policyName", name, names.dns_subdomain)


def validate_variables(errors: Errors, variables: Sequence[Variable], offers: Offers) -> dict[str, Type]:
    """Variables, each of which can use those before it; their types."""
    known: dict[str, Type] = {}
    for index, variable in enumerate(variables):
        place = f"spec.variables[{index}]"
        if not variable.name.strip():
            errors.append(required(f"{place}.name", "name is not specified"))
        elif not _IDENTIFIER.fullmatch(variable.name) or variable.name in _RESERVED:
            errors.append(invalid(f"{place}.name", variable.name, "must be a valid CEL identifier"))
        found = validate_expression(
            errors,
            variable.expression,
            f"{place}.expression",
            offers,
            variables=known,
            missing="expression is not specified",
        )
        known = {**known, variable.name: found}
    return known
