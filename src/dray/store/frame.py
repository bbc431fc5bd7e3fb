"""How one change looks on disk: a checksum, a fixed header, the key's three strings, the object's bytes.

::

    checksum u32 | type u8 | resource u16 | namespace u16 | name u16 | create u64 | previous u64 | strings | data

The lengths are those of the strings in UTF-8; the data is the rest. The checksum (CRC-32) covers all that follows it
and the revision, which is the frame's key in the database: a frame under a wrong revision is damage, too.
"""

from __future__ import annotations

import struct
from sys import intern
from zlib import crc32

from dray.store.backend import Entry
from dray.store.records import Event, EventType, Key

_CHECKSUM = struct.Struct("<I")
_HEADER = struct.Struct("<BHHHQQ")
_BOTH = struct.Struct("<IBHHHQQ")
_BODY = _BOTH.size
_REVISION = struct.Struct(">Q")

_CODES = {EventType.ADDED: 1, EventType.MODIFIED: 2, EventType.DELETED: 3}
_TYPES = {code: kind for kind, code in _CODES.items()}


class FrameError(ValueError):
    """The bytes are not what was written."""


def encode_revision(revision: int) -> bytes:
    """The revision as a database key: big-endian, so that byte order is revision order."""
    return _REVISION.pack(revision)


def decode_revision(key: bytes) -> int:
    """The inverse of `encode_revision`. Raises `FrameError`."""
    if len(key) != _REVISION.size:
        raise FrameError(f"revision key of {len(key)} bytes")
    revision: int = _REVISION.unpack(key)[0]
    return revision


def encode_event(event: Event, data: bytes | None = None) -> bytes:
    """The frame of one change; `data` are the bytes of the object if they are to be others than those that it has."""
    record = event.record
    key = record.key
    resource, namespace, name = key[0].encode(), key[1].encode(), key[2].encode()
    previous = event.previous.revision if event.previous is not None else 0
    header = _HEADER.pack(
        _CODES[event.type], len(resource), len(namespace), len(name), record.create_revision, previous
    )
    body = b"".join((header, resource, namespace, name, record.data if data is None else data))
    return _CHECKSUM.pack(_checksum(record.revision, body)) + body


def decode_entry(revision: int, frame: bytes) -> Entry:
    """The change in a frame. Raises `FrameError` when a single bit is wrong."""
    if len(frame) < _BODY:
        raise FrameError(f"revision {revision}: frame of {len(frame)} bytes")
    checksum, code, resource, namespace, name, create, previous = _BOTH.unpack_from(frame)
    if _checksum(revision, memoryview(frame)[_CHECKSUM.size :]) != checksum:
        raise FrameError(f"revision {revision}: wrong checksum")
    at_namespace = _BODY + resource
    at_name = at_namespace + namespace
    at_data = at_name + name
    key = Key(
        intern(frame[_BODY:at_namespace].decode()),
        intern(frame[at_namespace:at_name].decode()),
        frame[at_name:at_data].decode(),
    )
    return Entry(_TYPES[code], key, revision, create, previous, frame[at_data:])


def _checksum(revision: int, body: bytes | memoryview) -> int:
    return crc32(body, revision & 0xFFFFFFFF)
