"""Patches over HTTP: picks the format, changes the stored object, and records who set which field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from dray.api import schema
from dray.api.field import forbidden, invalid, required
from dray.api.meta import Object, StatusCause, StatusDetails
from dray.api.registry import CLUSTER_GROUP
from dray.server import body, errors, number_ranges, objects, writes
from dray.server.engine import Call, Engine
from dray.server.field_owners import definition_of, document_of, track, typed
from dray.server.http import Request
from dray.server.options import WriteOptions, invalid_options, write_options
from dray.server.owner_references import without_duplicates
from dray.server.patch import json_patch, managed, merge_patch, strategic
from dray.server.patch.apply import apply
from dray.server.patch.errors import ConflictsError, PatchError
from dray.server.request_namespace import in_namespace
from dray.store import Record

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
FORMATS = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)

LONGEST_QUOTE = 1024
"""How much of what a patch leaves is quoted when it makes no sense."""

Document = dict[str, Any]


class Patched(msgspec.Struct, frozen=True):
    """The object after the patch; an apply may also have created it."""

    record: Record
    created: bool = False


async def patch(engine: Engine, call: Call, request: Request) -> Patched:
    """Carries out a patch request. Raises ApiError."""
    given = write_options(request.query, "PatchOptions")
    format_ = body.media_type(request.header("content-type"))
    if format_ == APPLY_PATCH:
        return await _apply(engine, call, request, given)
    if "force" in request.query:
        raise invalid_options("PatchOptions", [forbidden("force", "may not be specified for non-apply patch")])
    change = _change(call, format_, body.parse(request.body, "application/json"))
    has_large_numbers = number_ranges.may_be_in(request.body)

    def patched(old: Object) -> Object:
        document = change(document_of(call, old))
        obj = _read(call, document, given)
        if has_large_numbers:
            _check_numbers(call, document)
        return obj

    return Patched(await writes.update(engine, call, patched, track))


def _change(call: Call, format_: str, wanted: Any) -> Callable[[Document], Document]:
    # Kubernetes knows strategic merge for its built-in kinds only; the cluster kinds are custom resources there.
    if format_ == STRATEGIC_PATCH and call.route.kind.group == CLUSTER_GROUP:
        raise errors.unsupported_media_type(format_, FORMATS)
    return change_of(format_, wanted, definition_of(call))


def change_of(format_: str, wanted: Any, definition: schema.Definition) -> Callable[[Document], Document]:
    """What a patch in one of the formats but apply does to a document. Raises ApiError, and so does the result."""
    if format_ == JSON_PATCH:
        return lambda document: _carry_out(lambda: json_patch.apply(document, wanted))
    if format_ == MERGE_PATCH:
        return lambda document: _carry_out(lambda: merge_patch.apply(document, wanted))
    if format_ == STRATEGIC_PATCH:
        return lambda document: _carry_out(lambda: strategic.apply(document, wanted, definition))
    raise errors.unsupported_media_type(format_, FORMATS)


def _read(call: Call, document: Any, given: WriteOptions) -> Object:
    """The patched document as an object that is still the one that the path names."""
    if not isinstance(document, dict):
        raise errors.bad_request("the patch does not leave an object")
    try:
        obj = body.from_value(document, call.route, given, call.warnings)
    except errors.ApiError as error:
        raise _unreadable(document, str(error)) from None
    meta = obj.metadata
    if meta.name != call.route.name:
        message = f"the name of the object ({meta.name}) does not match the name on the URL ({call.route.name})"
        raise errors.bad_request(message)
    obj = in_namespace(obj, call.route.namespace)
    return without_duplicates(obj, call.warnings, " after mutating admission happens")


def _check_numbers(call: Call, document: Document) -> None:
    try:
        number_ranges.check(document, call.route)
    except errors.ApiError as error:
        raise _unreadable(document, str(error)) from None


def _unreadable(document: Document, why: str) -> errors.ApiError:
    """What is left is no object of the kind: the patch is invalid, and the request is not a bad one."""
    problem = invalid("patch", msgspec.json.encode(document).decode()[:LONGEST_QUOTE], why)
    cause = StatusCause(reason=problem.reason, message=problem.message, field=problem.field)
    return errors.ApiError(422, "Invalid", f' "" is invalid: {problem}', StatusDetails(causes=(cause,)))


def _carry_out(change: Callable[[], Any]) -> Any:
    try:
        return change()
    except ConflictsError as error:
        causes = tuple(
            StatusCause(reason="FieldManagerConflict", message=found.message, field=found.field)
            for found in error.conflicts
        )
        raise errors.ApiError(409, "Conflict", error.message, StatusDetails(causes=causes)) from None
    except PatchError as error:
        raise _failure(error) from None


_REASONS = {400: "BadRequest", 413: "RequestEntityTooLarge", 422: "Invalid"}


def _failure(error: PatchError) -> errors.ApiError:
    details = StatusDetails() if error.code == 422 else None
    return errors.ApiError(error.code, _REASONS.get(error.code, ""), error.message, details)


async def _apply(engine: Engine, call: Call, request: Request, given: WriteOptions) -> Patched:
    """Server-side apply: creates the object if there is none."""
    if not given.field_manager:
        raise invalid_options("PatchOptions", [required("fieldManager", "is required for apply patch")])
    applied = body.parse_yaml(request.body)
    write = managed.Write(definition_of(call), given.field_manager, str(call.now), call.route.subresource)

    def wanted(live: Document | None) -> Object:
        new, entries = _carry_out(lambda: apply(live, applied, write, force=given.force))
        new["metadata"] = {"name": call.route.name, **new.get("metadata", {})}
        if call.route.namespace:
            new["metadata"].setdefault("namespace", call.route.namespace)
        obj = _read(call, new, given)
        _check_numbers(call, new)
        return objects.with_metadata(obj, managed_fields=typed(entries))

    if engine.store.get(call.key) is None and not call.route.subresource:
        new = wanted(None)
        if new.metadata.uid:  # meant for an object that is gone, not for a new one in its place (4381-126)
            uid = new.metadata.uid
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise errors.conflict(call.route.kind, call.route.name, why)
        return Patched(await writes.create(engine, call, new), created=True)
    return Patched(await writes.update(engine, call, lambda old: wanted(document_of(call, old))))
