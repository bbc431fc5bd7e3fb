"""Finalizers of objects whose opaque parts a server compares byte by byte.

kube-apiserver keeps what a claim says to drivers as it was written, with its spaces, and tells it in JSON without them.
What is read and written back is not the same to it then, and the spec may not change. In protobuf the bytes come as
they are kept, and the finalizers alone are replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from dray.api.meta import Object
from dray.api.wire import BYTES, FIXED32, FIXED64, MAGIC, WireError, bytes_field, fields, varint

KINDS: Final = frozenset({"resourceclaims.resource.k8s.io"})
_RAW, _METADATA, _FINALIZERS = 2, 1, 14
"""Of the envelope, of an object, and of its metadata."""


def differ_in_finalizers(stored: Object, wanted: Object) -> bool:
    """Whether nothing but finalizers is to change in a stored object. Its status is another request's affair."""
    same = {"finalizers": (), "managed_fields": ()}
    known, given = (replace(one.metadata, **same) for one in (stored, wanted))
    return known == given and getattr(stored, "spec", None) == getattr(wanted, "spec", None)


def with_finalizers(data: bytes, finalizers: Sequence[str]) -> bytes:
    """An object in protobuf with these finalizers alone, and its opaque parts byte for byte. Raises WireError."""
    if not data.startswith(MAGIC):
        raise WireError("no object of Kubernetes")
    named = b"".join(bytes_field(_FINALIZERS, name.encode()) for name in finalizers)
    envelope = memoryview(data)[len(MAGIC) :]
    raw = _field(envelope, _RAW)
    metadata = _without(_field(raw, _METADATA), _FINALIZERS) + named
    changed = bytes_field(_METADATA, metadata) + _without(raw, _METADATA)
    return MAGIC + bytes_field(_RAW, changed) + _without(envelope, _RAW)


def _field(message: memoryview, wanted: int) -> memoryview:
    for number, encoding, value in fields(message):
        if number == wanted and encoding == BYTES and isinstance(value, memoryview):
            return value
    raise WireError(f"field {wanted} is missing")


def _without(message: memoryview, unwanted: int) -> bytes:
    kept = []
    for number, encoding, value in fields(message):
        if number == unwanted:
            continue
        tag = varint(number << 3 | encoding)
        if isinstance(value, int):
            kept.append(tag + varint(value))
        elif encoding in (FIXED32, FIXED64):
            kept.append(tag + bytes(value))
        else:
            kept.append(tag + varint(len(value)) + bytes(value))
    return b"".join(kept)
