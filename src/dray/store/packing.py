"""Bytes of objects that are seldom looked at, kept small: what an object has that an example of its kind has not. Pure.

Objects of one resource are mostly alike, so of two kilobytes a few hundred bytes remain. Packing one takes some ten
microseconds, unpacking three. Nothing is lost: what comes out is what went in, to the byte.
"""

from __future__ import annotations

import zlib
from typing import Final

import msgspec

WINDOW_BITS: Final = 12
"""How far back a likeness is looked for: 4 KiB, which includes the example. Each object needs a multiple of that for
the time of its packing, so more would cost more than it saves."""
MEMORY_LEVEL: Final = 5
FASTEST: Final = 1

SMALLEST: Final = 256
LARGEST: Final = 32 * 1024
"""Bytes of objects that are packed: smaller ones are not worth it, larger ones would take long."""
WORTH: Final = 2
"""So many times smaller an object has to become, or it stays as it is."""
FAILURES: Final = 16
"""So many objects in a row that are not like the example make the next one the example."""


class Packed(msgspec.Struct, frozen=True, gc=False, eq=False):
    """Bytes that were packed, with what unpacks them."""

    data: bytes
    size: int
    """How many there were."""
    example: bytes

    def unpack(self) -> bytes:
        """The bytes as they were."""
        return zlib.decompressobj(-WINDOW_BITS, zdict=self.example).decompress(self.data)


class Packer:
    """Packs bytes of one resource; what they are compared with is the first of them, until they have changed."""

    __slots__ = ("_compressor", "_example", "_failures")

    def __init__(self) -> None:
        self._example = b""
        self._compressor = zlib.compressobj()
        self._failures = FAILURES

    def pack(self, data: bytes) -> Packed | None:
        """The same, smaller; None if that is not worth it."""
        if not SMALLEST <= len(data) <= LARGEST:
            return None
        if self._failures >= FAILURES:
            self._take_example(data)
        compressor = self._compressor.copy()
        packed = compressor.compress(data) + compressor.flush()
        if len(packed) * WORTH > len(data):
            self._failures += 1
            return None
        self._failures = 0
        return Packed(packed, len(data), self._example)

    def _take_example(self, data: bytes) -> None:
        self._failures = 0
        self._example = data[-(1 << WINDOW_BITS) :]
        self._compressor = zlib.compressobj(FASTEST, zlib.DEFLATED, -WINDOW_BITS, MEMORY_LEVEL, zdict=self._example)
