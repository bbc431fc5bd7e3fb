"""Equal parts of objects become one: tolerations, resources, attributes of devices are the same in thousands of them.

For objects that were just decoded and that nobody else has seen: they are changed in place, once, and never again.

    object ─▶ each field: written as one before it? ─▶ that very part
                          else ─▶ its own fields, the same way ─▶ kept for the next ones

Parts are compared within one field of one type. What is kept of a field is bounded, and begins anew when it is full;
a field whose values are nearly all different, such as a pod's spec with its node, is not looked up any more, only its
fields are.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import compress
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec.json import Encoder
from msgspec.structs import astuple, force_setattr

from dray.api.recent import Bounded
from dray.api.struct import encode_value
from dray.api.times import Time

MOST_PARTS: Final = 256
"""Of one field."""
MOST_NAMES: Final = 64
"""Names in maps that are told apart, of one field."""
LONGEST: Final = 2048
"""Bytes of a part that is kept, as JSON."""
TRIES: Final = 32
"""So many values of a field are looked up before it is found out whether that is worth while."""
MOST_TEXTS: Final = 4096
LONGEST_TEXT: Final = 64

_encode: Final = Encoder(enc_hook=encode_value).encode
_texts: Bounded[str, str] = Bounded(MOST_TEXTS)
_times: Bounded[str, Time] = Bounded(MOST_TEXTS)


class _Field:
    """A field of a type, or the items of one, with the values that it has had."""

    __slots__ = ("found", "is_varied", "known", "name", "parts", "tries")

    def __init__(self, name: str) -> None:
        self.name = name
        self.known: Bounded[Any, Any] = Bounded(MOST_PARTS)
        self.tries = 0
        self.found = 0
        self.is_varied = False
        """Whether its values are nearly all different."""
        self.parts: dict[str, _Field] = {}
        """The items of a list, or those of a map under one name: of a device's attributes, one is like no other."""

    def part(self, name: str = "") -> _Field:
        """The items of a list, or those of a map under a name that is new."""
        return self.parts.setdefault(name if len(self.parts) < MOST_NAMES else "", _Field(name))


@cache
def _fields(kind: type[msgspec.Struct]) -> tuple[_Field, ...]:
    return tuple(map(_Field, kind.__struct_fields__))


@cache
def _maps(kind: type[msgspec.Struct]) -> tuple[tuple[int, str], ...]:
    """The fields that are maps, with their places: each object has an empty one of its own where it has none."""
    fields = enumerate(msgspec.structs.fields(kind))
    return tuple((place, field.name) for place, field in fields if field.default_factory is dict)


def share(obj: msgspec.Struct) -> None:
    """Puts parts that earlier objects have, too, into an object in place of its own."""
    values = astuple(obj)
    for place, name in _maps(type(obj)):
        if values[place] == _NO_ENTRIES:
            force_setattr(obj, name, _NO_ENTRIES)
    for field, value in compress(zip(_fields(type(obj)), values, strict=True), values):  # most have nothing in them
        kind = type(value)
        if kind is bool or kind is int:
            continue
        found = _shared(value, kind, field)
        if found is not value:
            force_setattr(obj, field.name, found)


def _shared(value: Any, kind: type, field: _Field) -> Any:
    if kind is str:
        return shared_text(value)
    if kind is Time:
        return _time(value)
    is_plain = kind is not dict and kind is not tuple and _plain_kinds[kind]
    if is_plain is None:
        return value
    if field.is_varied:
        return value if is_plain else _with_shared(value, kind, field)
    written = value if is_plain else _encode(value)
    found = field.known.get(written)
    field.tries += 1
    if found is not None:
        field.found += 1
        return found
    field.is_varied = field.tries >= TRIES and field.found * 4 < field.tries
    value = _with_shared(value, kind, field)
    if len(_encode(value) if is_plain else written) <= LONGEST:
        field.known.keep(written, value)
    return value


class _PlainKinds(dict[type, bool | None]):
    """Which types have nothing but texts, numbers and lists of them in them; None for those that are no structs.

    Such a part is looked up as it is: equal ones are written the same. Others are looked up by what is written of them,
    because one amount has several spellings.
    """

    def __missing__(self, kind: type) -> bool | None:
        self[kind] = found = _is_plain(kind) if issubclass(kind, msgspec.Struct) else None
        return found


def _is_plain(kind: type) -> bool:
    names = {name for hint in get_type_hints(kind).values() for name in _leaves(hint)}
    return names <= {str, int, bool, type(None), ...}


def _leaves(hint: Any) -> Iterator[Any]:
    if get_origin(hint) in (Union, UnionType, tuple):
        for part in get_args(hint):
            yield from _leaves(part)
    else:
        yield hint


_plain_kinds: Final = _PlainKinds()
_NO_ENTRIES: Final[dict[str, Any]] = {}
"""Maps of objects are never changed in place, so one that is empty does for all."""


def _with_shared(value: Any, kind: type, field: _Field) -> Any:
    """A part that is new, with the parts of it that are not."""
    if kind is dict:
        parts = field.parts
        for name, each in value.items():
            if type(each) is not dict:  # free-form JSON, as deep as anybody likes
                shared = _shared(each, type(each), parts[name] if name in parts else field.part(name))
                if shared is not each:
                    value[name] = shared
        return value
    if kind is tuple:
        items = field.parts.get("") or field.part()
        return tuple([_shared(each, type(each), items) for each in value])
    share(value)
    return value


def shared_text(value: str) -> str:
    if len(value) > LONGEST_TEXT:
        return value
    known = _texts.get(value)
    return known if known is not None else _texts.keep(value, value)


def _time(value: Time) -> Time:
    known = _times.get(value)
    return known if known is not None else _times.keep(value, value)
