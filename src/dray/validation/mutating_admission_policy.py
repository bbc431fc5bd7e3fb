"""MutatingAdmissionPolicy and its bindings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dray.admission.environments import Offers
from dray.admission.mutating_policy import result_of
from dray.admission.policies import offers_of
from dray.api.field import invalid, not_supported, required
from dray.api.generated.admissionregistration import (
    MutatingAdmissionPolicy,
    MutatingAdmissionPolicyBinding,
    Mutation,
)
from dray.cel.types import Type
from dray.validation import check
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
    REINVOCATION_POLICIES,
    validate_conditions,
    validate_expression,
    validate_match_resources,
)
from dray.validation.context import Context, Errors
from dray.validation.rules import Rules

OPERATIONS: Final = ("*", "CONNECT", "CREATE", "UPDATE")
"""Nothing is changed by a delete."""
PATCH_TYPES: Final = ("ApplyConfiguration", "JSONPatch")


def _check(errors: Errors, new: MutatingAdmissionPolicy, old: MutatingAdmissionPolicy | None, _ctx: Context) -> None:
    spec = new.spec
    if old is not None and spec == old.spec:
        return
    has_params = spec.param_kind is not None
    offers = offers_of(has_params=has_params)
    check.required_one_of(errors, "spec.failurePolicy", spec.failure_policy or "", FAILURE_POLICIES)
    validate_param_kind(errors, spec.param_kind)
    path = "spec.matchConstraints"
    if spec.match_constraints is None:
        errors.append(required(path))
    else:
        validate_match_resources(errors, spec.match_constraints, path)
        rules = spec.match_constraints.resource_rules
        if not rules:
            errors.append(required(f"{path}.resourceRules"))
        errors.extend(
            not_supported(f"{path}.resourceRules.operations", operation, OPERATIONS)
            for rule in rules
            for operation in rule.operations
            if operation not in OPERATIONS
        )
    if old is None or (old.spec.match_conditions, old.spec.param_kind) != (spec.match_conditions, spec.param_kind):
        validate_conditions(errors, spec.match_conditions, "spec.matchConditions", has_params=has_params)
    variables = validate_variables(errors, spec.variables, offers)
    if not spec.mutations:
        errors.append(required("spec.mutations", "mutations must contain at least one item"))
    for index, mutation in enumerate(spec.mutations):
        _check_mutation(errors, mutation, f"spec.mutations[{index}]", offers | {"patches"}, variables)
    check.required_one_of(errors, "spec.reinvocationPolicy", spec.reinvocation_policy, REINVOCATION_POLICIES)


def _check_mutation(
    errors: Errors, mutation: Mutation, path: str, offers: Offers, variables: Mapping[str, Type]
) -> None:
    check.required_one_of(errors, f"{path}.patchType", mutation.patch_type, PATCH_TYPES)
    if mutation.patch_type not in PATCH_TYPES:
        return
    is_patch = mutation.patch_type == "JSONPatch"
    mine, other = ("jsonPatch", "applyConfiguration") if is_patch else ("applyConfiguration", "jsonPatch")
    given = mutation.json_patch if is_patch else mutation.apply_configuration
    if given is None:
        errors.append(required(f"{path}.{mine}", f"must be specified when patchType is {mutation.patch_type}"))
    else:
        results = (result_of(mutation),)
        validate_expression(errors, given.expression, f"{path}.{mine}.expression", offers, results, variables)
    if (mutation.apply_configuration if is_patch else mutation.json_patch) is not None:
        what = f"must not be specified when patchType is {mutation.patch_type}"
        errors.append(invalid(f"{path}.{other}", f"{{{other}}}", what))


def _check_binding(
    errors: Errors, new: MutatingAdmissionPolicyBinding, _old: MutatingAdmissionPolicyBinding | None, _ctx: Context
) -> None:
    spec = new.spec
    validate_policy_name(errors, spec.policy_name)
    validate_param_ref(errors, spec.param_ref)
    validate_match_resources(errors, spec.match_resources, "spec.matchResources")


RULES: Final = {
    "MutatingAdmissionPolicy": Rules(
        namespaced=False, own_finalizers=True, has_generation=True, default=default_policy, check=_check
    ),
    "MutatingAdmissionPolicyBinding": Rules(
        namespaced=False, own_finalizers=True, has_generation=True, default=default_binding, check=_check_binding
    ),
}
