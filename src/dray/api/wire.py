"""The wire format of protocol buffers: fields with a number and one of four encodings."""

from __future__ import annotations

import struct
from collections.abc import Iterator

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\x00"
"""How every object of Kubernetes begins, before its envelope."""
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10


class WireError(ValueError):
    """Bytes that are no protobuf message."""


def read_varint(data: memoryview, at: int) -> tuple[int, int]:
    """A number and the position after it. Raises WireError."""
    value = 0
    for step in range(_LONGEST_VARINT):
        if at + step >= len(data):
            raise WireError("a number is cut off")
        byte = data[at + step]
        value |= (byte & 0x7F) << (7 * step)
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at + step + 1
    raise WireError("a number is longer than 64 bits")


def fields(data: memoryview) -> Iterator[tuple[int, int, int | memoryview]]:
    """The fields of a message: number, encoding and value. Raises WireError where the bytes make no sense."""
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        number, encoding = tag >> 3, tag & 7
        if number == 0:
            raise WireError("a field has number 0")
        value: int | memoryview
        if encoding == VARINT:
            value, at = read_varint(data, at)
        elif encoding == BYTES:
            size, at = read_varint(data, at)
            value, at = _take(data, at, size)
        elif encoding in (FIXED64, FIXED32):
            value, at = _take(data, at, 8 if encoding == FIXED64 else 4)
        else:
            raise WireError(f"field {number} has the unknown encoding {encoding}")
        yield number, encoding, value


def _take(data: memoryview, at: int, size: int) -> tuple[memoryview, int]:
    if size > len(data) - at:
        raise WireError("a value is cut off")
    return data[at : at + size], at + size


def double(data: memoryview) -> float:
    """Eight bytes as a number, a whole one if it is one."""
    found: float = struct.unpack("<d", data)[0]
    return int(found) if found.is_integer() else found


def varint(value: int) -> bytes:
    """A number, encoded; negative ones as 64 bits."""
    value &= 0xFFFF_FFFF_FFFF_FFFF
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number_field(number: int, value: int) -> bytes:
    """A field with a number (or a flag)."""
    return varint(number << 3 | VARINT) + varint(value)


def bytes_field(number: int, value: bytes) -> bytes:
    """A field with bytes, text or a message."""
    return varint(number << 3 | BYTES) + varint(len(value)) + value
