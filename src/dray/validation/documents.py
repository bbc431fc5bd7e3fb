"""The public functions, for whoever has plain dicts: validate, default, convert.

This is the only place in the package that asks for the current time, and only where the caller gave none.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from dray.api import codec, registry
from dray.api.field import FieldError, Reason, required
from dray.api.meta import Object
from dray.api.registry import Kind
from dray.api.times import Time
from dray.validation import conversion, stages
from dray.validation.context import Context
from dray.validation.metadata import with_metadata

T = TypeVar("T", bound=Object)
GENERATED_SUFFIX = "x" * 5
LONGEST_PREFIX = 58
UNNAMED = "unnamed"


class InvalidObjectError(ValueError):
    """An object cannot be read. `errors` says why, field by field."""

    def __init__(self, errors: list[FieldError]) -> None:
        super().__init__("; ".join(str(error) for error in errors))
        self.errors = errors


def validate(obj: Any, old: Any = None) -> list[FieldError]:
    """What a Kubernetes API server would say of an object, or of the change from `old` to it; [] if it is valid.

    Takes dicts in any served version, or typed objects. A change of the status alone is judged as a status update,
    anything else as an ordinary create or update, which leaves the status alone. Unknown fields are no errors.
    """
    now = _current_time()
    try:
        kind, version, hub = read(obj)
        before = read(old)[2] if old is not None else None
    except InvalidObjectError as error:
        return error.errors
    ctx = Context(now=now, version=version)
    hub = placed(stages.default_object(hub, now), kind)
    if before is None:
        return stages.validate_create(stages.prepare_for_create(hub, ctx), ctx)
    before = placed(stages.default_object(before, now), kind)
    revision = hub.metadata.resource_version or before.metadata.resource_version or "1"
    hub = with_metadata(hub, resource_version=revision)
    if _only_status_differs(hub, before):
        return stages.validate_status_update(stages.prepare_for_status_update(hub, before, ctx), before, ctx)
    return stages.validate_update(stages.prepare_for_update(hub, before, ctx), before, ctx)


def default(obj: Any, *, now: Time | None = None) -> dict[str, Any]:
    """The object as a server would store it: with defaults, in its own version. Raises InvalidObjectError."""
    kind, version, hub = read(obj)
    hub = stages.default_object(hub, now or _current_time())
    return _plain(conversion.from_hub(hub, kind.api_version_of(version)))


def convert(obj: Any, api_version: str) -> dict[str, Any]:
    """The object in another version of its group. Raises InvalidObjectError if it cannot be read or has none such."""
    kind, _, hub = read(obj)
    group, version = registry.split_api_version(api_version)
    if group != kind.group or version not in kind.versions:
        served = ", ".join(kind.api_version_of(name) for name in kind.versions)
        detail = f"Unsupported value: {api_version}: {kind.kind} is served in {served}"
        raise InvalidObjectError([FieldError(Reason.NOT_SUPPORTED, "apiVersion", detail)])
    return _plain(conversion.from_hub(hub, api_version))


def _plain(obj: Object) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.json.decode(codec.encode(obj))
    return plain


def read(obj: Any) -> tuple[Kind, str, Object]:
    """The kind, the version and the hub form of a dict or typed object. Raises InvalidObjectError."""
    if isinstance(obj, msgspec.Struct):
        obj = msgspec.json.decode(codec.encode(obj))
    if not isinstance(obj, dict):
        raise InvalidObjectError([FieldError(Reason.TYPE_INVALID, "", "Invalid type: must be an object")])
    missing = [required(name) for name in ("apiVersion", "kind") if not isinstance(obj.get(name), str) or not obj[name]]
    if missing:
        raise InvalidObjectError(missing)
    try:
        kind = registry.by_kind(obj["apiVersion"], obj["kind"])
    except registry.UnknownKind as error:
        raise InvalidObjectError([FieldError(Reason.NOT_SUPPORTED, "kind", f"Unsupported value: {error}")]) from None
    version = registry.split_api_version(obj["apiVersion"])[1]
    try:
        reading = codec.read(obj, kind.type_of(version))
        codec.encode(reading.obj)
    except UnicodeEncodeError as error:
        detail = f"Invalid type: text that is not Unicode: {error.object[:80]!r}"
        raise InvalidObjectError([FieldError(Reason.TYPE_INVALID, "", detail)]) from None
    if reading.obj is None:
        raise InvalidObjectError(list(reading.errors))
    return kind, version, conversion.to_hub(reading.obj, kind.storage.api_version)


def placed(obj: T, kind: Kind) -> T:
    """The object as a request would place it: in some namespace, or in none, and with a name made of its prefix."""
    meta = obj.metadata
    namespace = (meta.namespace or "default") if kind.namespaced else ""
    name = meta.name
    if not name and meta.generate_name:
        name = meta.generate_name[:LONGEST_PREFIX] + GENERATED_SUFFIX
    if not name and kind.kind.endswith("Review"):
        name = UNNAMED  # a question, which is answered and kept nowhere
    if namespace == meta.namespace and name == meta.name:
        return obj
    return with_metadata(obj, namespace=namespace, name=name)


def _only_status_differs(new: Any, old: Any) -> bool:
    if "status" not in new.__struct_fields__ or new.status == old.status:
        return False
    return bool(replace(new, status=old.status, metadata=old.metadata) == old)


def _current_time() -> Time:
    return Time.of(dt.datetime.now(dt.UTC))
