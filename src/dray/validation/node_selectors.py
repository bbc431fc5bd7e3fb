"""Node selectors in slices, allocations and pod affinity."""

from __future__ import annotations

from dray.api.field import invalid, required
from dray.api.node_selector import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dray.validation import check, names
from dray.validation.context import Errors
from dray.validation.label_selectors import validate_requirement

NODE_NAME_FIELD = "metadata.name"


def validate_node_selector(errors: Errors, selector: NodeSelector, path: str) -> None:
    """At least one term, every requirement complete."""
    terms = f"{path}.nodeSelectorTerms"
    if not selector.node_selector_terms:
        errors.append(required(terms, "must have at least one node selector term"))
    for index, term in enumerate(selector.node_selector_terms):
        validate_node_selector_term(errors, term, f"{terms}[{index}]")


def validate_node_selector_term(errors: Errors, term: NodeSelectorTerm, path: str, *, any_values: bool = False) -> None:
    """Requirements on labels and on fields of the node; `any_values` lets them ask for labels that cannot be."""
    for index, requirement in enumerate(term.match_expressions):
        inner = f"{path}.matchExpressions[{index}]"
        validate_requirement(errors, requirement, inner, ordered=True, any_values=any_values)
    for index, requirement in enumerate(term.match_fields):
        _validate_field_requirement(errors, requirement, f"{path}.matchFields[{index}]")


def _validate_field_requirement(errors: Errors, requirement: NodeSelectorRequirement, path: str) -> None:
    values = f"{path}.values"
    if requirement.operator not in ("In", "NotIn"):
        errors.append(invalid(f"{path}.operator", requirement.operator, "not a valid selector operator"))
    elif len(requirement.values) != 1:
        errors.append(required(values, "must be one value"))
    if requirement.key != NODE_NAME_FIELD:
        errors.append(invalid(f"{path}.key", requirement.key, f"only {NODE_NAME_FIELD} can be selected by"))
        return
    for index, value in enumerate(requirement.values):
        check.name(errors, f"{values}[{index}]", value, names.dns_subdomain)
