"""Type checks of a ValidatingAdmissionPolicy: what its expressions get wrong about the kinds that it is about.

They change nothing about what the policy does; its status has them, for whoever wrote it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from dray import cel
from dray.admission.environments import environment
from dray.admission.policies import offers_of
from dray.admission.schema_types import TypedKind
from dray.api.generated.admissionregistration import (
    ExpressionWarning,
    NamedRuleWithOperations,
    ValidatingAdmissionPolicy,
)
from dray.cel.types import DYN, Type

__all__ = ["MOST_KINDS", "expression_warnings", "resources_of"]

MOST_KINDS: Final = 10
"""Of how many kinds a policy is checked at most."""


def resources_of(policy: ValidatingAdmissionPolicy) -> Iterator[tuple[str, str, str]]:
    """Group, version and resource that rules name; who names all is not checked."""
    constraints = policy.spec.match_constraints
    for rule in constraints.resource_rules if constraints is not None else ():
        yield from _named(rule)


def _named(rule: NamedRuleWithOperations) -> Iterator[tuple[str, str, str]]:
    if any("*" in name for name in (*rule.api_groups, *rule.api_versions)):
        return
    for group in sorted(rule.api_groups):
        for version in sorted(rule.api_versions):
            for resource in sorted(rule.resources):
                if "*" not in resource and "/" not in resource:
                    yield group, version, resource


def expression_warnings(
    policy: ValidatingAdmissionPolicy, kinds: Sequence[TypedKind], params: TypedKind | None
) -> tuple[ExpressionWarning, ...]:
    """What expressions get wrong, for each of the kinds."""
    checks = [_check_of(policy, kind, params) for kind in sorted(kinds, key=lambda kind: kind.name)[:MOST_KINDS]]
    warnings: list[ExpressionWarning] = []
    for index, validation in enumerate(policy.spec.validations):
        for name, expression in (
            ("expression", validation.expression),
            ("messageExpression", validation.message_expression),
        ):
            found = [text for check in checks if expression and (text := check(expression))]
            if found:
                place = f"spec.validations[{index}].{name}"
                warnings.append(ExpressionWarning(field_ref=place, warning="\n".join(found)))
    return tuple(warnings)


def _check_of(policy: ValidatingAdmissionPolicy, kind: TypedKind, params: TypedKind | None) -> Callable[[str], str]:
    """What says what is wrong with an expression about objects of a kind; nothing if it says nothing."""
    offers = offers_of(has_params=policy.spec.param_kind is not None)
    params_type = DYN if params is None else params.type
    structs = kind.structs if params is None else {**kind.structs, **params.structs}
    known: dict[str, Type] = {}

    def compile(expression: str) -> cel.Program:
        world = environment(offers, known, object_type=kind.type, params_type=params_type, structs=structs)
        return cel.compile_program(expression, world)

    for variable in policy.spec.variables:
        try:
            known[variable.name] = compile(variable.expression).result
        except cel.CompileError:
            known[variable.name] = DYN

    def check(expression: str) -> str:
        try:
            compile(expression)
        except cel.CompileError as error:
            return f"{kind.name}: compilation failed: {error.render(expression)}\n"
        return ""

    return check
