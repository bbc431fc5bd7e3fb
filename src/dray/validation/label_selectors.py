"""Label selectors."""

from __future__ import annotations

from typing import Final

from dray.api.field import forbidden, invalid, required, too_many
from dray.api.meta import LabelSelector, LabelSelectorRequirement
from dray.api.node_selector import NodeSelectorRequirement
from dray.validation import check, names
from dray.validation.context import Errors
from dray.validation.metadata import validate_labels

MOST_VALUES: Final = 10_000
"""Of all requirements of a selector: whoever is told of the object reads them, in a few milliseconds."""


def validate_label_selector(errors: Errors, selector: LabelSelector | None, path: str) -> None:
    """Every requirement complete; no selector at all is fine here."""
    if selector is None:
        return
    values = sum(1 + len(requirement.values) for requirement in selector.match_expressions)
    if len(selector.match_labels) + values > MOST_VALUES:
        errors.append(too_many(path, len(selector.match_labels) + values, MOST_VALUES))
        return
    validate_labels(errors, selector.match_labels, f"{path}.matchLabels")
    for index, requirement in enumerate(selector.match_expressions):
        validate_requirement(errors, requirement, f"{path}.matchExpressions[{index}]")


def validate_requirement(
    errors: Errors,
    requirement: LabelSelectorRequirement | NodeSelectorRequirement,
    path: str,
    *,
    ordered: bool = False,
    any_values: bool = False,
) -> None:
    """One requirement on a label; only those on nodes know the operators that compare numbers (`ordered`)."""
    values = f"{path}.values"
    match requirement.operator:
        case "In" | "NotIn":
            if not requirement.values:
                errors.append(required(values, "must be given with the operators In and NotIn"))
        case "Exists" | "DoesNotExist":
            if requirement.values:
                errors.append(forbidden(values, "may not be given with the operators Exists and DoesNotExist"))
        case "Gt" | "Lt" if ordered:
            if len(requirement.values) != 1:
                errors.append(required(values, "must be one value with the operators Gt and Lt"))
        case _:
            errors.append(invalid(f"{path}.operator", requirement.operator, "not a valid selector operator"))
    check.name(errors, f"{path}.key", requirement.key, names.label_key)
    for index, value in enumerate(() if any_values else requirement.values):
        check.name(errors, f"{values}[{index}]", value, names.label_value)
