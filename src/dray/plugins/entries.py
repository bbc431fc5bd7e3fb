"""How many entries an answer has, counted before it is read: one of a map takes microseconds, and nobody else runs.

Bytes alone do not bound that: in the 4 MiB that gRPC takes, there is room for two million entries. Entries are counted
at the top of every answer, and in long ones at all depths (`check_depths`), for which there is a thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from google.protobuf.descriptor import Descriptor

MOST_ENTRIES: Final = 10_000
"""Claims, devices or versions in one answer."""
MOST_FIELDS: Final = 100_000
"""Of all messages in an answer: ten thousand devices with all that is said of their health have fewer."""
LONG: Final = 128 * 1024
"""Bytes from which on an answer is counted at all depths: what is in a shorter one is read in a few milliseconds."""

_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5
_FIXED: Final = {_FIXED_64: 8, _FIXED_32: 4}
_TAG: Final = 0xFFFFFFFF
_GROUP: Final = "there is a group in an answer, which no contract has: what is in it and behind it is not counted"


class TooManyEntries(Exception):
    """An answer is not read, because it has more entries than anything that is meant."""


def check_entries(message: bytes, most: int = MOST_ENTRIES) -> None:
    """Raises TooManyEntries. Where the bytes are no message, that is for whoever reads them to say."""
    for entries, _ in enumerate(_fields(message, 0, len(message))):
        if entries >= most:
            raise TooManyEntries(f"there are more than {most} entries in an answer")


def check_depths(message: bytes, descriptor: Descriptor, most: int = MOST_FIELDS) -> None:
    """Counts the fields of a message and of all messages in it. Raises TooManyEntries."""
    fields = 0
    left = [(0, len(message), descriptor)]
    while left:
        at, end, kind = left.pop()
        inner = {field.number: field.message_type for field in kind.fields if field.message_type is not None}
        for number, begin, behind in _fields(message, at, end):
            fields += 1
            if fields > most:
                raise TooManyEntries(f"there are more than {most} fields in an answer")
            below = inner.get(number)
            if below is not None:
                left.append((begin, min(behind, end), below))


def _fields(message: bytes, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """The number of each field of a message, and from where to where a message in it would be."""
    while at < end:
        tag, begin = _varint(message, at)
        wire = tag & 7
        if wire == _VARINT:
            _, begin = _varint(message, begin)
            at = begin
        elif wire == _BYTES:
            length, begin = _varint(message, begin)
            at = begin + length
        elif wire in _FIXED:
            at = begin = begin + _FIXED[wire]
        else:
            raise TooManyEntries(_GROUP)
        yield (tag & _TAG) >> 3, begin, at


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """A number, and where the next thing begins; beyond the end if the number has none."""
    value = 0
    for shift, byte in enumerate(message[at : at + 10]):
        value |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:
            return value, at + shift + 1
    return 0, len(message)
