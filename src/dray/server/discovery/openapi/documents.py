"""Whole OpenAPI documents as plain values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dray import __version__
from dray.api.registry import Kind
from dray.custom.kinds import CustomKind
from dray.server.discovery.openapi import custom_schemas, schemas
from dray.server.discovery.openapi.operations import STATUS, Operation, group_word, operations
from dray.server.discovery.openapi.parameters import PRETTY, Parameter
from dray.server.discovery.openapi.schemas import V2, V3, Dialect
from dray.server.routes import Table

Document = dict[str, Any]

_LIST_TYPES = ("application/json", "application/json;stream=watch")
_RESULT_TYPES = ("application/json",)
_INFO = {"title": "dray", "version": __version__}
_BEARER = {"BearerToken": {"description": "A bearer token.", "type": "apiKey", "name": "authorization", "in": "header"}}


Kinds = Mapping[tuple[str, str], list[Kind]]
"""What is served, by group and version."""


def served_kinds(table: Table) -> Kinds:
    """Everything that a table serves now."""
    return {
        (group, version): table.kinds_in(group, version)
        for group, versions in table.versions.items()
        for version in versions
    }


def version_3(kinds: list[Kind], group: str, version: str) -> Document:
    """The document of one group in one version, in OpenAPI 3."""
    asked = list(operations(group, version, kinds))
    return {
        "openapi": "3.0.0",
        "info": _INFO,
        "paths": _paths(asked, _operation_3, _parameter_3),
        "components": {
            "schemas": _schemas(asked, kinds, V3),
            "securitySchemes": _BEARER,
        },
        "security": [{"BearerToken": []}],
    }


def version_2(served: Kinds) -> Document:
    """The document of everything, in OpenAPI 2."""
    asked = [one for (group, version), kinds in served.items() for one in operations(group, version, kinds)]
    every = [kind for kinds in served.values() for kind in kinds]
    return {
        "swagger": "2.0",
        "info": _INFO,
        "paths": _paths(asked, _operation_2, _parameter_2),
        "definitions": _schemas(asked, every, V2),
        "securityDefinitions": _BEARER,
        "security": [{"BearerToken": []}],
    }


def _schemas(asked: Iterable[Operation], kinds: Iterable[Kind], dialect: Dialect) -> Document:
    """All schemas that operations speak of."""
    custom = {
        name: found
        for kind in kinds
        if isinstance(kind, CustomKind)
        for name, found in custom_schemas.schemas_of(kind, dialect).items()
    }
    used = _names(asked) - custom.keys() | set(custom_schemas.USED if custom else ())
    built_in = {name: schemas.definition_schema(found, dialect) for name, found in schemas.closure(used).items()}
    return built_in | custom


def _names(asked: Iterable[Operation]) -> set[str]:
    return {STATUS} | {name for one in asked for name in (one.body, one.result) if name}


def _paths(asked: Iterable[Operation], operation: Any, parameter: Any) -> Document:
    paths: Document = {}
    for one in asked:
        if one.path not in paths:
            paths[one.path] = {"parameters": [parameter(found) for found in (*one.path_parameters, PRETTY)]}
        paths[one.path][one.method] = operation(one)
    return paths


def _facts(one: Operation) -> Document:
    """What both versions say alike."""
    made: Document = {"tags": [_tag(one)], "description": one.description, "operationId": one.id}
    if one.action:
        made["x-kubernetes-action"] = one.action
    if one.gvk is not None:
        made["x-kubernetes-group-version-kind"] = one.gvk._asdict()
    return made


def _tag(one: Operation) -> str:
    """`resource_v1`: what generated clients group operations by."""
    _, api, *rest = one.path.split("/")
    group, version = (rest[0], rest[1]) if api == "apis" else ("", rest[0])
    return f"{group_word(group).lower()}_{version}"


def _operation_3(one: Operation) -> Document:
    made = _facts(one)
    if one.parameters:
        made["parameters"] = [_parameter_3(found) for found in one.parameters]
    if one.body:
        made["requestBody"] = {
            "content": {media: {"schema": V3.reference(one.body)} for media in one.body_types},
            "required": one.body_required,
        }
    media_types = _LIST_TYPES if one.action == "list" else _RESULT_TYPES
    made["responses"] = {str(code): _answer_3("Done.", one.result, media_types) for code in one.codes} | {
        "401": _answer_3("Who asks is not known.", STATUS, _RESULT_TYPES),
        "default": _answer_3("The request failed; the status says why.", STATUS, _RESULT_TYPES),
    }
    return made


def _answer_3(description: str, result: str, media_types: tuple[str, ...]) -> Document:
    return {"description": description, "content": {one: {"schema": V3.reference(result)} for one in media_types}}


def _parameter_3(found: Parameter) -> Document:
    made: Document = {"name": found.name, "in": found.place, "description": found.description}
    if found.place == "path":
        made["required"] = True
    return made | {"schema": {"type": found.type, "uniqueItems": True}}


def _operation_2(one: Operation) -> Document:
    made = _facts(one)
    made["consumes"] = list(one.body_types) if one.body else ["*/*"]
    made["produces"] = list(_LIST_TYPES if one.action == "list" else _RESULT_TYPES)
    made["schemes"] = ["https"]
    found = [_parameter_2(parameter) for parameter in one.parameters]
    if one.body:
        found.insert(0, {"name": "body", "in": "body", "required": one.body_required, "schema": V2.reference(one.body)})
    if found:
        made["parameters"] = found
    made["responses"] = {
        str(code): {"description": "Done.", "schema": V2.reference(one.result)} for code in one.codes
    } | {
        "401": {"description": "Who asks is not known.", "schema": V2.reference(STATUS)},
        "default": {"description": "The request failed; the status says why.", "schema": V2.reference(STATUS)},
    }
    return made


def _parameter_2(found: Parameter) -> Document:
    made: Document = {"name": found.name, "in": found.place, "description": found.description, "type": found.type}
    return made | ({"required": True} if found.place == "path" else {"uniqueItems": True})
