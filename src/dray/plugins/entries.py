"""How many entries an answer has, counted before it is read: one of a map takes microseconds, and nobody else runs.

Bytes alone do not bound that: in the 4 MiB that gRPC takes, there is room for a million entries.
"""

from __future__ import annotations

from typing import Final

MOST_ENTRIES: Final = 10_000
"""Claims, devices or versions in one answer."""

_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5
_FIXED: Final = {_FIXED_64: 8, _FIXED_32: 4}


class TooManyEntries(Exception):
    """An answer is not read, because it has more entries than anything that is meant."""


def check_entries(message: bytes, most: int = MOST_ENTRIES) -> None:
    """Raises TooManyEntries. Where the bytes are no message, that is for whoever reads them to say."""
    at, entries, end = 0, 0, len(message)
    while at < end:
        entries += 1
        if entries > most:
            raise TooManyEntries(f"there are more than {most} entries in an answer")
        tag, at = _varint(message, at)
        kind = tag & 7
        if kind == _VARINT:
            _, at = _varint(message, at)
        elif kind == _BYTES:
            length, at = _varint(message, at)
            at += length
        elif kind in _FIXED:
            at += _FIXED[kind]
        else:
            return


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """A number, and where the next thing begins; beyond the end if the number has none."""
    value = 0
    for shift, byte in enumerate(message[at : at + 10]):
        value |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:
            return value, at + shift + 1
    return 0, len(message)
