"""MutatingAdmissionPolicy: expressions that change an object, by what they would apply or by a JSON patch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from dray import cel
from dray.admission.conditions import Conditions
from dray.admission.environments import APPLY, JSON_PATCH
from dray.admission.evaluation import (
    Compiled,
    Evaluation,
    ExpressionFailed,
    Given,
    compile_expression,
    compile_variables,
    letters_to_compile,
)
from dray.admission.policies import IGNORE, matcher_of, offers_of
from dray.admission.views import json_of, type_faults
from dray.api.generated.admissionregistration import (
    MutatingAdmissionPolicy,
    Mutation,
)
from dray.cel.types import list_of
from dray.cel.values import MapValue, StructValue, is_list

__all__ = ["MutatingPolicy", "WantedChange"]


@dataclass(frozen=True, slots=True)
class WantedChange:
    """What a mutation wants: that a document is applied, or that operations (a JSON patch) are carried out."""

    applied: dict[str, Any] | None = None
    operations: list[dict[str, Any]] | None = None


class MutatingPolicy:
    """A policy. Its expressions are compiled when they are first needed, by `compile`, which may take a while."""

    def __init__(self, stored: MutatingAdmissionPolicy) -> None:
        spec = stored.spec
        self.name: Final = stored.metadata.name
        self.param_kind: Final = spec.param_kind
        self.ignores_failures: Final = spec.failure_policy == IGNORE
        self.is_reinvoked: Final = spec.reinvocation_policy == "IfNeeded"
        self.matcher: Final = matcher_of(spec.match_constraints)
        self.is_compiled = False
        self._spec = spec
        self._conditions: Conditions | None = None
        self._variables: dict[str, Compiled] = {}
        self._mutations: list[Compiled] = []

    @property
    def size(self) -> int:
        """How many letters there are to compile."""
        texts = [expression_of(mutation) for mutation in self._spec.mutations]
        texts += [each.expression for each in self._spec.variables]
        texts += [each.expression for each in self._spec.match_conditions]
        return letters_to_compile(texts)

    def __len__(self) -> int:
        return len(self._mutations)

    def compile(self) -> None:
        """Compiles all expressions; what is wrong with one is told when it is evaluated."""
        spec = self._spec
        offers = offers_of(has_params=spec.param_kind is not None)
        if spec.match_conditions:
            self._conditions = Conditions(spec.match_conditions, offers)
        self._variables, types = compile_variables([(each.name, each.expression) for each in spec.variables], offers)
        self._mutations = [
            compile_expression(expression_of(mutation), offers | {"patches"}, types, result_of(mutation))
            for mutation in spec.mutations
        ]
        self.is_compiled = True

    def is_met(self, given: Given, params: Any, budget: cel.Budget) -> bool:
        """Whether the conditions hold. Raises ConditionsFailed, Postponed, or what `budget` raises."""
        return self._conditions is None or self._conditions.hold(given, params, budget)

    def change(self, index: int, params: Any, given: Given, budget: cel.Budget = cel.NOW) -> WantedChange:
        """What one mutation wants changed in an object as it is now.

        Raises ExpressionFailed, OutOfBudget, Postponed, or what `budget` raises.
        """
        value = Evaluation(given, params, self._variables, budget).run(self._mutations[index])
        return read_change(value)


def expression_of(mutation: Mutation) -> str:
    """The expression of a mutation, of whichever sort it is."""
    part = mutation.json_patch if mutation.patch_type == "JSONPatch" else mutation.apply_configuration
    return "" if part is None else part.expression


def result_of(mutation: Mutation) -> Any:
    """The type of what the expression of a mutation must make."""
    return list_of(JSON_PATCH) if mutation.patch_type == "JSONPatch" else APPLY


def read_change(value: Any) -> WantedChange:
    """What the value of a mutation's expression means. Raises ExpressionFailed."""
    try:
        if is_list(value):
            return WantedChange(operations=[_operation(each) for each in value])
        if isinstance(value, StructValue):
            _check_types(value, APPLY.name)
            return WantedChange(applied=json_of(value))
    except ValueError as error:
        raise ExpressionFailed(str(error)) from None
    raise ExpressionFailed(f"unsupported return type of a mutation: {value.__class__.__name__}")


def _operation(value: Any) -> dict[str, Any]:
    if not isinstance(value, MapValue):
        raise ExpressionFailed("type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch")
    changed = value.find("value")
    if isinstance(changed, StructValue):
        _check_types(changed, changed.type_name)
    found: dict[str, Any] = json_of(value)
    return found


def _check_types(value: StructValue, path: str) -> None:
    faults = list(type_faults(value, path))
    if faults:
        raise ExpressionFailed("type mismatch: " + "\n".join(faults))
