"""Finalizers are replaced in protobuf, and every other byte of an object stays."""

from __future__ import annotations

import pytest

from dray.api.wire import MAGIC, WireError, bytes_field, number_field
from dray.client.opaque_parts import with_finalizers

NAMED = bytes_field(1, b"claim") + bytes_field(14, b"old") + number_field(7, 300) + bytes_field(14, b"example.com/kept")
SPEC = bytes_field(2, bytes_field(1, b'{"kind": "Config",  "spaces" : 1}'))
STATUS = bytes_field(3, b"\x0d\x01\x02\x03\x04")
TYPE = bytes_field(1, bytes_field(1, b"resource.k8s.io/v1"))
REST = bytes_field(3, b"") + bytes_field(4, b"")


def envelope(metadata: bytes) -> bytes:
    return MAGIC + TYPE + bytes_field(2, bytes_field(1, metadata) + SPEC + STATUS) + REST


@pytest.mark.parametrize("finalizers", [(), ("new",), ("one", "other")])
def test_only_finalizers_change(finalizers: tuple[str, ...]) -> None:
    made = with_finalizers(envelope(NAMED), finalizers)
    named = b"".join(bytes_field(14, name.encode()) for name in finalizers)
    metadata = bytes_field(1, b"claim") + number_field(7, 300) + named
    assert made == MAGIC + bytes_field(2, bytes_field(1, metadata) + SPEC + STATUS) + TYPE + REST


@pytest.mark.parametrize("data", [b"", b"{}", MAGIC, MAGIC + TYPE, MAGIC + bytes_field(2, SPEC), MAGIC + b"\xff"])
def test_what_is_no_object_is_refused(data: bytes) -> None:
    with pytest.raises(WireError):
        with_finalizers(data, ())
