"""Stored objects as bytes: encoded once when written, and served from those bytes in the version they are stored in.

The bytes of an object start with its kind and apiVersion. In a list Kubernetes leaves both out, so a list is the stored
bytes with that start cut off, joined.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from dray.api import codec
from dray.api.meta import ListMeta, Object, ObjectMeta
from dray.api.registry import Kind
from dray.custom.kinds import CustomKind
from dray.server import errors
from dray.store import Finish, Record
from dray.validation import from_hub

T = TypeVar("T", bound=Object)

MOST_BYTES = 12 * 1024 * 1024
"""Of an object as it is stored: four times as much as a body, for what is recorded of who set which field."""
METADATA_KIND, METADATA_VERSION = "PartialObjectMetadata", "meta.k8s.io/v1"


class PartialObjectMetadata(Object):
    """An object reduced to its metadata, for clients that need no more."""


def with_metadata(obj: T, **changes: object) -> T:
    """The object with some of its metadata changed."""
    return replace(obj, metadata=replace(obj.metadata, **changes))


def numbered(obj: Object, revision: int) -> Object:
    """The object with another revision."""
    return replace(obj, metadata=replace(obj.metadata, resource_version=str(revision)))


def finish(obj: Object) -> Finish:
    """How the store completes an object: the revision goes into the metadata, and the object into bytes."""

    def complete(revision: int) -> tuple[Object, bytes]:
        final = replace(obj, metadata=replace(obj.metadata, resource_version=str(revision)))
        return final, codec.encode(final)

    return complete


def finish_ahead(obj: Object) -> Finish:
    """`finish` for a large object: all but the revision is put into bytes now, beside the loop as it may be.

    Raises ApiError if it is too large to be stored; what is there already can always be deleted.
    """
    mark = secrets.token_hex(16)
    marked = replace(obj, metadata=replace(obj.metadata, resource_version=mark))
    before, _, after = codec.encode(marked).partition(mark.encode())
    if len(before) + len(after) > MOST_BYTES and obj.metadata.deletion_timestamp is None:
        raise errors.object_too_large(MOST_BYTES)

    def complete(revision: int) -> tuple[Object, bytes]:
        text = str(revision)
        final = replace(obj, metadata=replace(obj.metadata, resource_version=text))
        return final, b"".join((before, text.encode(), after))

    return complete


def _head(kind: Kind) -> bytes:
    """How the bytes of stored objects begin; remembered with the kind, which may go one day."""
    found: bytes | None = kind.__dict__.get("head")
    if found is None:
        found = kind.__dict__["head"] = _first_bytes(kind)
    return found


def _first_bytes(kind: Kind) -> bytes:
    return b'{"kind":"%b","apiVersion":"%b",' % (kind.kind.encode(), kind.api_version.encode())


def is_stored_form(kind: Kind, version: str) -> bool:
    """Whether objects of a built-in kind are stored as they are shown in a version."""
    return version == kind.versions[0] and kind.storage is kind


def render(kind: Kind, version: str, record: Record) -> bytes:
    """The object of a record in a version of the API."""
    if isinstance(kind, CustomKind):
        return _render_custom(kind, record)
    if is_stored_form(kind, version):
        return record.data
    return render_object(kind, version, record.obj)


def _render_custom(kind: CustomKind, record: Record) -> bytes:
    """What is stored, unless it was stored in another version or before the definition became what it is."""
    if record.revision > kind.since and kind.storage is kind and record.data.startswith(_head(kind)):
        return record.data
    return codec.encode(kind.shown(record.obj))


def render_object(kind: Kind, version: str, obj: Object) -> bytes:
    """A hub object in a version of the API."""
    return codec.encode(from_hub(obj, kind.api_version_of(version)))


def render_list(kind: Kind, version: str, records: Iterable[Record], meta: ListMeta) -> bytes:
    """A list of objects in a version of the API."""
    items = b",".join(render_items(kind, version, records))
    return b"".join((list_head(kind, version, meta), items, b"]}"))


def list_head(kind: Kind, version: str, meta: ListMeta) -> bytes:
    """A list up to its first object; after the last one, `]}` ends it."""
    head = b'{"kind":"%b","apiVersion":"%b","metadata":%b,"items":['
    return head % (kind.list_kind.encode(), kind.api_version_of(version).encode(), codec.encode(meta))


def render_items(kind: Kind, version: str, records: Iterable[Record]) -> list[bytes]:
    """Objects as a list has them. Those of custom resources say what they are, each of them."""
    if isinstance(kind, CustomKind):
        return [_render_custom(kind, record) for record in records]
    if is_stored_form(kind, version):
        cut = len(_head(kind))
        return [b"{" + record.data[cut:] for record in records]
    api_version = kind.api_version_of(version)
    return [codec.encode(replace(from_hub(record.obj, api_version), kind="", api_version="")) for record in records]


def metadata_only(record: Record) -> PartialObjectMetadata:
    """An object reduced to its metadata."""
    meta: ObjectMeta = record.obj.metadata
    return PartialObjectMetadata(kind=METADATA_KIND, api_version=METADATA_VERSION, metadata=meta)


def render_bookmark(kind: str, api_version: str, meta: ObjectMeta) -> bytes:
    """What tells a watch of nothing but its metadata: how far it has come."""
    plain = codec.to_builtins(meta)
    plain.setdefault("creationTimestamp", None)
    return msgspec.json.encode({"kind": kind, "apiVersion": api_version, "metadata": plain})


def render_metadata_list(records: Iterable[Record], meta: ListMeta) -> bytes:
    """A list of objects reduced to their metadata."""
    head = b'{"kind":"%bList","apiVersion":"%b","metadata":%b,"items":['
    start = head % (METADATA_KIND.encode(), METADATA_VERSION.encode(), codec.encode(meta))
    return b"".join((start, b",".join([codec.encode(metadata_only(record)) for record in records]), b"]}"))


def is_done(obj: Object) -> bool:
    """Whether an object that is being deleted has nothing left to wait for."""
    meta = obj.metadata
    if meta.deletion_timestamp is None or meta.finalizers or meta.deletion_grace_period_seconds:
        return False
    return not getattr(getattr(obj, "spec", None), "finalizers", ()) or obj.kind != "Namespace"
