"""Patches: a stored object is changed in one of four formats, and who set which field is recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from dray.api import codec, registry, schema
from dray.api.field import invalid
from dray.api.meta import Object, StatusCause, StatusDetails
from dray.api.registry import CLUSTER_GROUP, DRAY_GROUP
from dray.server import errors, objects
from dray.server.beside import LARGE
from dray.server.bodies import body, number_ranges, parts
from dray.server.bodies.options import WriteOptions
from dray.server.bodies.owner_references import without_duplicates
from dray.server.bodies.request_namespace import in_namespace
from dray.server.engine import Call, Engine
from dray.server.patch import json_patch, managed, merge_patch, strategic
from dray.server.patch.apply import apply
from dray.server.patch.errors import ConflictsError, PatchError
from dray.server.patch.formats import APPLY_PATCH, FORMATS, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Patch
from dray.server.patch.inline import InlineDefinition
from dray.server.strategies import View
from dray.server.verbs import writes
from dray.server.verbs.field_owners import definition_of, document_of, typed
from dray.store import Record

LONGEST_QUOTE = 1024
"""How much of what a patch leaves is quoted when it makes no sense."""

Document = dict[str, Any]


class Patched(msgspec.Struct, frozen=True):
    """The object after the patch; an apply may also have created it."""

    record: Record
    created: bool = False


async def patch(engine: Engine, call: Call, wanted: Patch, given: WriteOptions) -> Patched:
    """Changes the stored object, or the part of it that the call names. Raises ApiError."""
    view = engine.strategies.update(call.route.kind, call.route.subresource).view
    if wanted.format == APPLY_PATCH and view is None:
        return await _apply(engine, call, wanted, given)
    change = _change_of_view(call, wanted, view) if view is not None else _change(call, wanted, given)
    if wanted.format == JSON_PATCH and json_patch.may_grow(wanted.value):
        call.is_large = True
    return Patched(await writes.update(engine, call, change))


def _change(call: Call, wanted: Patch, given: WriteOptions) -> writes.Change:
    # Kubernetes knows strategic merge for its built-in kinds only; the cluster kinds are custom resources there.
    kind = call.route.kind
    if wanted.format == STRATEGIC_PATCH and (kind.group in (CLUSTER_GROUP, DRAY_GROUP) or kind.is_custom):
        raise errors.unsupported_media_type(wanted.format, tuple(one for one in FORMATS if one != STRATEGIC_PATCH))
    change = _change_of_document(wanted, definition_of(call))

    def patched(old: Object) -> Object:
        document = change(document_of(call, old))
        obj = _read(call, document, given)
        if wanted.has_large_numbers:
            _check_numbers(call, document)
        if wanted.format == JSON_PATCH and given.field_validation != "Ignore":
            _complain(call, wanted.value, document, given)
        return obj

    return patched


def _complain(call: Call, operations: Any, document: Document, given: WriteOptions) -> None:
    """Warns of what no operation of a JSON patch has, or refuses it (ApiError), as `fieldValidation` says."""
    complaints = [f'json patch unknown field "{path}"' for path in json_patch.unknown_members(operations)]
    if complaints and given.field_validation == "Strict":
        raise _unreadable(document, f"strict decoding error: {', '.join(complaints)}")
    call.warnings += [text for text in complaints if text not in call.warnings]


def _change_of_view(call: Call, wanted: Patch, view: View) -> writes.Change:
    definition = schema.for_kind(*registry.split_api_version(view.api_version), view.kind)
    change = _change_of_document(wanted, definition)
    return lambda old: view.merge(old, view.read(change(codec.to_builtins(view.show(old))), call.route.name))


def _change_of_document(
    wanted: Patch, definition: schema.Definition | InlineDefinition
) -> Callable[[Document], Document]:
    """What a patch in one of the formats but apply does to a document. Raises ApiError, and so does the result."""
    if wanted.format == JSON_PATCH:
        return lambda document: _carry_out(lambda: json_patch.apply(document, wanted.value))
    if wanted.format == MERGE_PATCH:
        return lambda document: _carry_out(lambda: merge_patch.apply(document, wanted.value))
    if wanted.format == STRATEGIC_PATCH and isinstance(definition, schema.Definition):
        return lambda document: _carry_out(lambda: strategic.apply(document, wanted.value, definition))
    raise errors.unsupported_media_type(wanted.format, FORMATS)


def _read(call: Call, document: Any, given: WriteOptions, *, keep_nulls: bool = False) -> Object:
    """The patched document as an object that is still the one that the path names."""
    if not isinstance(document, dict):
        raise errors.bad_request("the patch does not leave an object")
    try:
        size = None if call.is_large else 2 * LARGE  # that of the object before, and of the patch
        obj = body.from_value(document, call.route, given, call.warnings, keep_nulls=keep_nulls, size=size)
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


async def _apply(engine: Engine, call: Call, wanted: Patch, given: WriteOptions) -> Patched:
    """Server-side apply: creates the object if there is none."""
    write = managed.Write(definition_of(call), given.field_manager, str(call.now), call.route.subresource)

    def applied(live: Document | None) -> Object:
        new, entries = _carry_out(lambda: apply(live, wanted.value, write, force=bool(given.force)))
        new["metadata"] = {"name": call.route.name, **new.get("metadata", {})}
        if call.route.namespace:
            new["metadata"].setdefault("namespace", call.route.namespace)
        obj = _read(call, new, given, keep_nulls=True)  # who applies one wants to own it
        _check_numbers(call, new)
        owned = typed(entries)
        if owned is None:
            raise parts.too_many_owned()
        return objects.with_metadata(obj, managed_fields=owned)

    if engine.store.get(call.key) is None and not call.route.subresource:
        new = await engine.beside(call, applied, None) if call.is_large else applied(None)
        if new.metadata.uid:  # meant for an object that is gone, not for a new one in its place (4381-126)
            uid = new.metadata.uid
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise errors.conflict(call.route.kind, call.route.name, why)
        return Patched(await writes.create(engine, call, new, track=False), created=True)
    return Patched(await writes.update(engine, call, lambda old: applied(document_of(call, old)), track=False))
