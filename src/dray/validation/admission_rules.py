"""What webhooks and admission policies have in common: rules, selectors, conditions, and their expressions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, TypeVar

from msgspec.structs import replace

from dray import cel
from dray.admission.environments import Offers, environment
from dray.api.field import duplicate, invalid, not_supported, required
from dray.api.generated.admissionregistration import (
    MatchCondition,
    MatchResources,
    NamedRuleWithOperations,
    RuleWithOperations,
)
from dray.api.meta import LabelSelector
from dray.cel.errors import WrongResult
from dray.cel.types import BOOL, DYN, Type
from dray.validation import check, names
from dray.validation.context import Errors
from dray.validation.label_selectors import validate_label_selector

FAILURE_POLICIES: Final = ("Fail", "Ignore")
MATCH_POLICIES: Final = ("Equivalent", "Exact")
REINVOCATION_POLICIES: Final = ("IfNeeded", "Never")
OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
SCOPES: Final = ("*", "Cluster", "Namespaced")
ALL: Final = "*"
CONDITIONS: Final = 64

Rule = TypeVar("Rule", RuleWithOperations, NamedRuleWithOperations)


def default_rules(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """Rules for all scopes, unless they say which."""
    return tuple(rule if rule.scope is not None else replace(rule, scope=ALL) for rule in rules)


def default_match_resources(found: MatchResources | None) -> MatchResources | None:
    """What a policy or a binding is about, with the usual selectors."""
    if found is None:
        return None
    return replace(
        found,
        match_policy=found.match_policy or "Equivalent",
        namespace_selector=found.namespace_selector or LabelSelector(),
        object_selector=found.object_selector or LabelSelector(),
        resource_rules=default_rules(found.resource_rules),
        exclude_resource_rules=default_rules(found.exclude_resource_rules),
    )


def validate_rule(errors: Errors, rule: RuleWithOperations | NamedRuleWithOperations, path: str) -> None:
    """Operations, groups, versions and resources, each of them given; who takes all names no others."""
    _validate_operations(errors, rule.operations, f"{path}.operations")
    _validate_names(errors, rule.api_groups, f"{path}.apiGroups", "API groups", may_be_empty=True)
    _validate_names(errors, rule.api_versions, f"{path}.apiVersions", "API versions")
    _validate_resources(errors, rule.resources, f"{path}.resources")
    if rule.scope is not None:
        check.one_of(errors, f"{path}.scope", rule.scope, SCOPES)


def _validate_operations(errors: Errors, operations: tuple[str, ...], path: str) -> None:
    if not operations:
        errors.append(required(path))
    if len(operations) > 1 and ALL in operations:
        errors.append(invalid(path, operations, "if '*' is present, must not specify other operations"))
    for index, operation in enumerate(operations):
        check.one_of(errors, f"{path}[{index}]", operation, OPERATIONS)


def _validate_names(
    errors: Errors, values: tuple[str, ...], path: str, what: str, *, may_be_empty: bool = False
) -> None:
    if not values:
        errors.append(required(path))
    if len(values) > 1 and ALL in values:
        errors.append(invalid(path, values, f"if '*' is present, must not specify other {what}"))
    errors.extend(required(f"{path}[{index}]") for index, value in enumerate(values) if not value and not may_be_empty)


def _validate_resources(errors: Errors, resources: tuple[str, ...], path: str) -> None:
    if not resources:
        errors.append(required(path))
    all_parts: set[str] = set()
    all_resources: set[str] = set()
    for index, text in enumerate(resources):
        place = f"{path}[{index}]"
        if not text:
            errors.append(required(place))
            continue
        resource, slash, part = text.partition("/")
        if not slash:
            continue
        if resource in all_parts:
            errors.append(invalid(place, text, f"if '{resource}/*' is present, must not specify {text}"))
        if part in all_resources:
            errors.append(invalid(place, text, f"if '*/{part}' is present, must not specify {text}"))
        if part == ALL:
            all_parts.add(resource)
        if resource == ALL:
            all_resources.add(part)
    if len(resources) > 1 and "*/*" in resources:
        errors.append(invalid(path, resources, "if '*/*' is present, must not specify other resources"))
    if ALL in resources and any("/" not in text and text not in ("", ALL) for text in resources):
        what = "if '*' is present, must not specify other resources without subresources"
        errors.append(invalid(path, resources, what))


def validate_match_resources(errors: Errors, found: MatchResources | None, path: str) -> None:
    """What a policy or a binding is about."""
    if found is None:
        return
    check.required_one_of(errors, f"{path}.matchPolicy", found.match_policy or "", MATCH_POLICIES)
    for name, selector in (
        ("namespaceSelector", found.namespace_selector),
        ("objectSelector", found.object_selector),
    ):
        if selector is None:
            errors.append(required(f"{path}.{name}"))
        validate_label_selector(errors, selector, f"{path}.{name}")
    for name, rules in (
        ("resourceRules", found.resource_rules),
        ("excludeResourceRules", found.exclude_resource_rules),
    ):
        for index, rule in enumerate(rules):
            _validate_named_rule(errors, rule, f"{path}.{name}[{index}]")


def _validate_named_rule(errors: Errors, rule: NamedRuleWithOperations, path: str) -> None:
    for index, name in enumerate(rule.resource_names):
        check.name(errors, f"{path}.resourceNames[{index}]", name, names.path_segment)
    check.unique(errors, f"{path}.resourceNames", rule.resource_names)
    validate_rule(errors, rule, path)


def validate_conditions(
    errors: Errors, conditions: Sequence[MatchCondition], path: str, *, has_params: bool = False
) -> None:
    """Conditions with names of their own, and expressions that are true or false."""
    if not check.fits(errors, path, conditions, CONDITIONS):
        return
    offers = frozenset({"authorizer", "params"} if has_params else {"authorizer"})
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        place = f"{path}[{index}]"
        validate_expression(errors, condition.expression.strip(), f"{place}.expression", offers, (BOOL,))
        check.required_name(errors, f"{place}.name", condition.name, names.label_key)
        if condition.name and condition.name in seen:
            errors.append(duplicate(f"{place}.name", condition.name))
        seen.add(condition.name)


def validate_expression(
    errors: Errors,
    expression: str,
    path: str,
    offers: Offers,
    results: Collection[Type] = (),
    variables: Mapping[str, Type] | None = None,
    *,
    missing: str = "",
) -> Type:
    """An expression that compiles to one of the types; the type, or what is known of it if it does not."""
    if not expression.strip():
        errors.append(required(path, missing))
        return DYN
    try:
        return cel.compile_program(expression, environment(offers, variables), *results).result
    except WrongResult as error:
        errors.append(invalid(path, expression, error.message))
    except cel.CompileError as error:
        errors.append(invalid(path, expression, f"compilation failed: {error.render(expression)}"))
    return DYN


def validate_choice(errors: Errors, path: str, value: str | None, allowed: tuple[str, ...]) -> None:
    """One of a set, unless nothing is chosen."""
    if value is not None and value not in allowed:
        errors.append(not_supported(path, value, allowed))
