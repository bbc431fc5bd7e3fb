"""What an admission patch makes of an object: in the version it was written for, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from dray.admission.request import Resource
from dray.api import codec
from dray.api.meta import Object
from dray.server import errors
from dray.server.admission.admission_request import AdmissionRequest
from dray.server.bodies import body
from dray.server.bodies.options import WriteOptions
from dray.server.bodies.request_namespace import check_namespace
from dray.server.objects import with_metadata

Change = Callable[[dict[str, Any]], Any]
"""Makes another document of one. Raises PatchError."""


async def patched(
    asked: AdmissionRequest, resource: Resource, change: Change, *, may_grow: bool, is_strict: bool = False
) -> Object:
    """The new object after a change of it, worked out beside the loop if it is large, or may become so.

    `is_strict`: fields that nobody knows are an error, and not dropped. Raises PatchError, ApiError.
    """
    call = asked.call
    call.is_large = call.is_large or may_grow
    if call.is_large:
        return await asked.engine.beside(call, _patched, asked, resource, change, is_strict)
    return _patched(asked, resource, change, is_strict)


def _patched(asked: AdmissionRequest, resource: Resource, change: Change, is_strict: bool) -> Object:
    """The new object after a change of it in one of its versions, with defaults. Raises PatchError, ApiError."""
    assert asked.new is not None
    shown = asked.in_version(asked.new, resource)
    document = change(codec.to_builtins(shown))
    if not isinstance(document, dict):
        raise errors.internal("the patch does not leave an object")
    try:
        changed = _read(asked, resource, document, is_strict)
    except errors.ApiError as error:
        raise errors.internal(str(error)) from None
    before = asked.new.metadata
    check_namespace(changed, before.namespace)
    kept: dict[str, Any] = {
        "namespace": before.namespace,
        "uid": before.uid,
        "creation_timestamp": before.creation_timestamp,
        "managed_fields": before.managed_fields,
    }
    if asked.old is None:  # nothing is born dying; with updates that is looked at as in any other
        kept |= {
            "deletion_timestamp": before.deletion_timestamp,
            "deletion_grace_period_seconds": before.deletion_grace_period_seconds,
            "generation": before.generation,
        }
    return asked.with_defaults(with_metadata(changed, **kept))


def _read(asked: AdmissionRequest, resource: Resource, document: dict[str, Any], is_strict: bool) -> Object:
    if asked.view is not None:
        assert asked.new is not None
        return asked.view.merge(asked.new, asked.view.read(document, asked.name))
    if asked.posts is not None:
        reading = codec.read(document, asked.posts)
        if reading.obj is None:
            raise errors.bad_request("; ".join(map(str, reading.errors)))
        return reading.obj
    route = replace(asked.call.route, kind=asked.kind_of(resource), version=resource.version)
    validation = "Strict" if is_strict and not route.kind.is_custom else "Ignore"
    return body.from_value(document, route, WriteOptions(field_validation=validation), [])
