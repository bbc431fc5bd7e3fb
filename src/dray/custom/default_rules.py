"""Defaults must be good values themselves: known fields only, and nothing that their own schema refuses."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from dray.api.field import invalid
from dray.api.generated.apiextensions import JSONSchemaProps
from dray.custom.defaulting import DefaultsTooLarge, compile_defaults
from dray.custom.list_types import compile_list_types
from dray.custom.problems import Problem, path_of
from dray.custom.pruning import compile_pruning, shown
from dray.custom.ratcheting import NOTHING
from dray.custom.rules import OutOfBudget, Run, compile_rules
from dray.custom.value_checks import compile_checks
from dray.validation.context import Errors


def check_defaults(errors: Errors, schema: JSONSchemaProps, path: str) -> None:
    """What is wrong with the defaults in a schema. Each default is judged by the schema that it stands in."""
    for part, place in _with_defaults(schema, path):
        _check(errors, part, f"{place}.default")


def check_defaults_by_rules(errors: Errors, schema: JSONSchemaProps, path: str, run: Run) -> None:
    """What rules say of the defaults in a good schema. Raises Postponed."""
    for part, place in _with_defaults(schema, path):
        judge = compile_rules(part)
        if judge is not None:
            with contextlib.suppress(OutOfBudget):
                _tell(errors, judge(_completed(part), NOTHING, run), f"{place}.default")


def _with_defaults(schema: JSONSchemaProps, path: str) -> Iterator[tuple[JSONSchemaProps, str]]:
    waiting = [(schema, path)]
    while waiting:
        part, place = waiting.pop()
        if part.default is not None:
            yield part, place
        waiting += [(inner, f"{place}.properties[{name}]") for name, inner in part.properties.items()]
        if isinstance(part.items, JSONSchemaProps):
            waiting.append((part.items, f"{place}.items"))
        if isinstance(part.additional_properties, JSONSchemaProps):
            waiting.append((part.additional_properties, f"{place}.additionalProperties"))


def _completed(schema: JSONSchemaProps) -> Any:
    """A default with the defaults of what is in it. Raises DefaultsTooLarge."""
    value = deepcopy(schema.default)
    default = compile_defaults(schema)
    if default is not None:
        default(value)
    return value


def _check(errors: Errors, schema: JSONSchemaProps, path: str) -> None:
    prune = compile_pruning(schema)
    dropped = prune(deepcopy(schema.default)) if prune is not None else None
    if dropped is not None:
        names = ", ".join(sorted(map(shown, dropped)))
        errors.append(invalid(path, schema.default, f"must not have unknown fields: {names}"))
    try:
        value = _completed(schema)
    except DefaultsTooLarge as error:
        errors.append(invalid(path, schema.default, str(error)))
        return
    for check in (compile_checks(schema), compile_list_types(schema)):
        _tell(errors, check(value) if check is not None else None, path)


def _tell(errors: Errors, problems: list[Problem] | None, path: str) -> None:
    for problem in problems or ():
        inner = path_of(problem.steps)
        errors.append(problem.build(f"{path}{'' if inner.startswith('[') or not inner else '.'}{inner}"))
