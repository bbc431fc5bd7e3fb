"""ValidatingAdmissionPolicy and its bindings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dray.admission.environments import Offers
from dray.admission.policies import offers_of
from dray.api.field import duplicate, invalid, required
from dray.api.generated.admissionregistration import (
    AuditAnnotation,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
    ValidatingAdmissionPolicySpec,
    Validation,
)
from dray.cel.types import BOOL, NULL, STRING, Type
from dray.validation import check, names
from dray.validation.admission_policies import (
    default_binding,
    default_policy,
    validate_param_kind,
    validate_param_ref,
    validate_policy_name,
    validate_variables,
)
from dray.validation.admission_rules import (
    FAILURE_POLICIES,
    validate_choice,
    validate_conditions,
    validate_expression,
    validate_match_resources,
)
from dray.validation.context import Context, Errors
from dray.validation.rules import Rules

REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge")
ACTIONS: Final = ("Audit", "Deny", "Warn")
ANNOTATIONS: Final = 20
LONGEST_ANNOTATION: Final = 5 * 1024
_ONE: Final = "validations or auditAnnotations must contain at least one item"


def _check(
    errors: Errors, new: ValidatingAdmissionPolicy, old: ValidatingAdmissionPolicy | None, _ctx: Context
) -> None:
    spec = new.spec
    if old is not None and spec == old.spec:
        return
    has_params = spec.param_kind is not None
    asking, telling = offers_of(has_params=has_params), offers_of(has_params=has_params, authorizes=False)
    check.required_one_of(errors, "spec.failurePolicy", spec.failure_policy or "", FAILURE_POLICIES)
    validate_param_kind(errors, spec.param_kind)
    if spec.match_constraints is None:
        errors.append(required("spec.matchConstraints"))
    else:
        validate_match_resources(errors, spec.match_constraints, "spec.matchConstraints")
        if not spec.match_constraints.resource_rules:
            errors.append(required("spec.matchConstraints.resourceRules"))
    if old is None or (old.spec.match_conditions, old.spec.param_kind) != (spec.match_conditions, spec.param_kind):
        validate_conditions(errors, spec.match_conditions, "spec.matchConditions", has_params=has_params)
    variables = validate_variables(errors, spec.variables, asking)
    if not spec.validations and not spec.audit_annotations:
        errors += [required("spec.validations", _ONE), required("spec.auditAnnotations", _ONE)]
    for index, validation in enumerate(spec.validations):
        _check_validation(errors, validation, f"spec.validations[{index}]", asking, telling, variables)
    _check_annotations(errors, new.metadata.name, spec, asking, variables)


def _check_validation(
    errors: Errors,
    validation: Validation,
    path: str,
    asking: Offers,
    telling: Offers,
    variables: Mapping[str, Type],
) -> None:
    missing = "expression is not specified"
    place = f"{path}.expression"
    validate_expression(errors, validation.expression, place, asking, (BOOL,), variables, missing=missing)
    message, written = validation.message, validation.message_expression
    if written and not written.strip():
        errors.append(invalid(f"{path}.messageExpression", written, "must be non-empty if specified"))
    elif written:
        validate_expression(errors, written, f"{path}.messageExpression", telling, (STRING,), variables)
    if message and not message.strip():
        errors.append(invalid(f"{path}.message", message, "must be non-empty if specified"))
    elif "\n" in message.strip() or "\r" in message.strip():
        errors.append(invalid(f"{path}.message", message, "must not contain line breaks"))
    validate_choice(errors, f"{path}.reason", validation.reason, REASONS)


def _check_annotations(
    errors: Errors, name: str, spec: ValidatingAdmissionPolicySpec, offers: Offers, variables: Mapping[str, Type]
) -> None:
    path = "spec.auditAnnotations"
    if len(spec.audit_annotations) > ANNOTATIONS:
        what = f"must not have more than {ANNOTATIONS} auditAnnotations"
        errors.append(invalid(path, [note.key for note in spec.audit_annotations], what))
        return
    seen: set[str] = set()
    for index, note in enumerate(spec.audit_annotations):
        _check_annotation(errors, name, note, f"{path}[{index}]", offers, variables)
        if note.key in seen:
            errors.append(duplicate(f"{path}[{index}].key", note.key))
        seen.add(note.key)


def _check_annotation(
    errors: Errors, name: str, note: AuditAnnotation, path: str, offers: Offers, variables: Mapping[str, Type]
) -> None:
    if name:
        check.name(errors, f"{path}.key", f"{name}/{note.key}", names.label_key)
    else:
        errors.append(invalid(f"{path}.key", note.key, "requires metadata.name be non-empty"))
    place = f"{path}.valueExpression"
    if len(note.value_expression.strip().encode()) > LONGEST_ANNOTATION:
        errors.append(required(place, f"must not exceed {LONGEST_ANNOTATION} bytes in length"))
        return
    missing = "valueExpression is not specified"
    validate_expression(errors, note.value_expression, place, offers, (STRING, NULL), variables, missing=missing)


def _check_binding(
    errors: Errors,
    new: ValidatingAdmissionPolicyBinding,
    _old: ValidatingAdmissionPolicyBinding | None,
    _ctx: Context,
) -> None:
    spec = new.spec
    validate_policy_name(errors, spec.policy_name)
    validate_param_ref(errors, spec.param_ref)
    validate_match_resources(errors, spec.match_resources, "spec.matchResources")
    path = "spec.validationActions"
    for index, action in enumerate(spec.validation_actions):
        check.one_of(errors, f"{path}[{index}]", action, ACTIONS)
    check.unique(errors, path, spec.validation_actions)
    if {"Deny", "Warn"} <= set(spec.validation_actions):
        why = "repeating the same validation failure information in the API response and headers serves no purpose"
        errors.append(invalid(path, spec.validation_actions, f"must not contain both Deny and Warn ({why})"))
    if not spec.validation_actions:
        errors.append(required(path, "at least one validation action is required"))


RULES: Final = {
    "ValidatingAdmissionPolicy": Rules(
        namespaced=False,
        own_finalizers=True,
        has_generation=True,
        has_status=True,
        default=default_policy,
        check=_check,
    ),
    "ValidatingAdmissionPolicyBinding": Rules(
        namespaced=False, own_finalizers=True, has_generation=True, default=default_binding, check=_check_binding
    ),
}
