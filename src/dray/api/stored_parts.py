"""Stored bytes as objects that share equal parts: what was read before, byte for byte, is not read again.

    bytes ─▶ each field's own bytes: as in one before? ─▶ that very part
                                     else ─▶ its fields, the same way ─▶ kept for the next ones

Of thousands of pods most parts are the same in all. Reading each of them whole, and then looking for what others have,
costs three times as much. The outcome is what `codec.decode` and `shared_parts.share` come to.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import Raw

from dray.api import codec
from dray.api.recent import Bounded
from dray.api.shared_parts import LONGEST, MOST_NAMES, MOST_PARTS, TRIES, share, shared_text
from dray.api.struct import decode_value

T = TypeVar("T", bound=msgspec.Struct)
_Read = Callable[[bytes | Raw], Any]

_UNION: Final = (Union, UnionType)
_items: Final = msgspec.json.Decoder(list[Raw]).decode
_entries: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_text: Final = msgspec.json.Decoder(str).decode
_texts: Final = msgspec.json.Decoder(list[str]).decode
_named_texts: Final = msgspec.json.Decoder(dict[str, str]).decode


def decode(data: bytes, kind: type[T]) -> T:
    """Bytes that `codec.encode` made of an object of a built-in kind. Raises DecodeError for anything else."""
    try:
        obj: T = _struct(kind)(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError, TypeError, KeyError):
        obj = codec.decode(data, kind)  # which finds out what is wrong, if anything is
        share(obj)
    return obj


class _Place:
    """A field of a type, or the items of one, with the values that it has had by their bytes.

    Those who look into `known` do so themselves, and count what they `found`: nearly every value is found, and a call
    for each would cost more than all the rest. Where nothing is known they do not even take the bytes: to hash two
    kilobytes that are like no others costs a microsecond.
    """

    __slots__ = ("_missed", "_parts", "_whole", "found", "known", "name", "read")

    def __init__(self, name: str, kind: Any) -> None:
        self.name = name
        self._whole = msgspec.json.Decoder(kind, dec_hook=decode_value).decode
        self._parts = _reader_of_parts(_some(kind)) or self._whole
        self.known: Bounded[bytes, Any] = Bounded(MOST_PARTS)
        """Empty if its values are nearly all different: only their parts are looked up then."""
        self.read: _Read = self._learn
        """What bytes stand for that are not `known`."""
        self.found = 0
        self._missed = 0

    def _learn(self, given: bytes | Raw) -> Any:
        data = bytes(given)
        value = self._whole(data) if data == b"null" else self._parts(data)
        self._missed += 1
        if self._missed >= TRIES and self.found < self._missed // 3:
            self.known.clear()
            self.read = self._parts
        elif len(data) <= LONGEST:
            self.known.keep(data, value)
        return value


class _Struct:
    """Reads the objects of a type; how is found out when the first one comes."""

    __slots__ = ("_kind", "_places")

    def __init__(self, kind: type[msgspec.Struct]) -> None:
        self._kind = kind
        self._places: dict[str, _Place] = {}

    def __call__(self, data: bytes | Raw) -> Any:
        places = self._places or self._prepare()
        values: dict[str, Any] = {}
        for name, each in _entries(data).items():
            place = places[name]
            if place.known:
                part = bytes(each)
                value = place.known.get(part)
                if value is None:
                    value = place.read(part)
                else:
                    place.found += 1
            else:
                value = place.read(each)
            values[place.name] = value
        return self._kind(**values)

    def _prepare(self) -> dict[str, _Place]:
        fields = msgspec.structs.fields(self._kind)
        self._places = {field.encode_name: _Place(field.name, field.type) for field in fields}
        return self._places


@cache
def _struct(kind: type[msgspec.Struct]) -> _Struct:
    return _Struct(kind)


def _some(kind: Any) -> Any:
    """A type without None, where that is the only other thing that a value may be."""
    if get_origin(kind) not in _UNION:
        return kind
    others = [one for one in get_args(kind) if one is not NoneType]
    return others[0] if len(others) == 1 else kind


def _reader_of_parts(kind: Any) -> _Read | None:
    """How values of a type are read part by part; None if they may be several things, and are read as a whole."""
    if kind is str:
        return _text
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _struct(kind)
    arguments = get_args(kind)
    if get_origin(kind) is tuple and arguments[1:] == (...,):
        return _texts_reader if arguments[0] is str else _tuple_reader(arguments[0])
    if get_origin(kind) is dict and arguments[1] is not Any:
        return _named_texts_reader if arguments[1] is str else _map_reader(arguments[1])
    return None


def _texts_reader(data: bytes | Raw) -> tuple[str, ...]:
    return tuple(map(shared_text, _texts(data)))


def _named_texts_reader(data: bytes | Raw) -> dict[str, str]:
    return {shared_text(name): shared_text(value) for name, value in _named_texts(data).items()}


def _tuple_reader(item: Any) -> _Read:
    place = _Place("", item)

    def read(data: bytes | Raw) -> tuple[Any, ...]:
        values = []
        for each in _items(data):
            if place.known:
                part = bytes(each)
                value = place.known.get(part)
                if value is None:
                    value = place.read(part)
                else:
                    place.found += 1
            else:
                value = place.read(each)
            values.append(value)
        return tuple(values)

    return read


def _map_reader(item: Any) -> _Read:
    """Of a device's attributes, one is like no other: each name has a place of its own."""
    places: dict[str, _Place] = {}
    rest = _Place("", item)

    def read(data: bytes | Raw) -> dict[str, Any]:
        values = {}
        for name, each in _entries(data).items():
            place = places.get(name)
            if place is None:
                place = rest
                if len(places) < MOST_NAMES:
                    place = places[name] = _Place(shared_text(name), item)
            if place.known:
                part = bytes(each)
                value = place.known.get(part)
                if value is None:
                    value = place.read(part)
                else:
                    place.found += 1
            else:
                value = place.read(each)
            values[place.name or shared_text(name)] = value
        return values

    return read
