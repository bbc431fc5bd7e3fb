"""Whole OpenAPI documents as plain values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dray import __version__
from dray.server.openapi import schemas
from dray.server.openapi.operations import STATUS, Operation, group_word, operations
from dray.server.openapi.parameters import PRETTY, Parameter
from dray.server.openapi.schemas import V2, V3
from dray.server.routes import Table

Document = dict[str, Any]

_LIST_TYPES = ("application/json", "application/json;stream=watch")
_RESULT_TYPES = ("application/json",)
_INFO = {"title": "dray", "version": __version__}
_BEARER = {"BearerToken": {"description": "A bearer token.", "type": "apiKey", "name": "authorization", "in": "header"}}


def version_3(table: Table, group: str, version: str) -> Document:
    """The document of one group in one version, in OpenAPI 3."""
    asked = list(operations(group, version, table.kinds_in(group, version)))
    definitions = schemas.closure(_names(asked))
    return {
        "openapi": "3.0.0",
        "info": _INFO,
        "paths": _paths(asked, _operation_3, _parameter_3),
        "components": {
            "schemas": {name: schemas.definition_schema(found, V3) for name, found in definitions.items()},
            "securitySchemes": _BEARER,
        },
        "security": [{"BearerToken": []}],
    }


def version_2(table: Table) -> Document:
    """The document of everything, in OpenAPI 2."""
    asked = [
        one
        for group, versions in table.versions.items()
        for version in versions
        for one in operations(group, version, table.kinds_in(group, version))
    ]
    definitions = schemas.closure(_names(asked))
    return {
        "swagger": "2.0",
        "info": _INFO,
        "paths": _paths(asked, _operation_2, _parameter_2),
        "definitions": {name: schemas.definition_schema(found, V2) for name, found in definitions.items()},
        "securityDefinitions": _BEARER,
        "security": [{"BearerToken": []}],
    }


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
