"""Defaults must be good values themselves: known fields only, and nothing that their own schema refuses."""

from __future__ import annotations

from copy import deepcopy

from dray.api.field import invalid
from dray.api.generated.apiextensions import JSONSchemaProps
from dray.custom.defaulting import compile_defaults
from dray.custom.list_types import compile_list_types
from dray.custom.problems import Problem
from dray.custom.pruning import compile_pruning, shown
from dray.custom.value_checks import compile_checks
from dray.validation.context import Errors


def check_defaults(errors: Errors, schema: JSONSchemaProps, path: str) -> None:
    """What is wrong with the defaults in a schema. Each default is judged by the schema that it stands in."""
    waiting = [(schema, path)]
    while waiting:
        part, place = waiting.pop()
        if part.default is not None:
            _check(errors, part, f"{place}.default")
        waiting += [(inner, f"{place}.properties[{name}]") for name, inner in part.properties.items()]
        if isinstance(part.items, JSONSchemaProps):
            waiting.append((part.items, f"{place}.items"))
        if isinstance(part.additional_properties, JSONSchemaProps):
            waiting.append((part.additional_properties, f"{place}.additionalProperties"))


def _check(errors: Errors, schema: JSONSchemaProps, path: str) -> None:
    value = deepcopy(schema.default)
    prune, default = compile_pruning(schema), compile_defaults(schema)
    dropped = prune(value) if prune is not None else None
    if dropped is not None:
        names = ", ".join(sorted(map(shown, dropped)))
        errors.append(invalid(path, schema.default, f"must not have unknown fields: {names}"))
    if default is not None:
        default(value)
    problems: list[Problem] = []
    for check in (compile_checks(schema), compile_list_types(schema)):
        problems += (check(value) if check is not None else None) or []
    for problem in problems[:1]:
        found = problem.error()
        errors.append(
            invalid(path, schema.default, f"{found.field}: {found.message}" if found.field else found.message)
        )
