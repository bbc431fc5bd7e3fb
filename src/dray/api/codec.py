"""JSON to typed objects and back.

`decode` is the fast, strict way, for bytes that dray wrote. `read` is for what people and other programs send: it takes
the same fast way first, and only if that fails walks the document, drops what is unknown, treats null as absent (as
Kubernetes does) and collects every problem with its path instead of stopping at the first.
"""

from __future__ import annotations

import builtins
import json
import types
import typing
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar, cast, get_args, get_origin

import msgspec
from msgspec import inspect

from dray.api.binary import Base64
from dray.api.custom import CustomObject
from dray.api.field import FieldError, Reason, key_path, shown
from dray.api.meta import ObjectMeta
from dray.api.quantity import Quantity
from dray.api.resource import v1beta1
from dray.api.resource.slice import DeviceCapacity
from dray.api.struct import decode_value, encode_value

T = TypeVar("T")

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
MAX_DEPTH = 100
MOST_PROBLEMS = 100
"""How many wrong, unknown or repeated fields of a document are told, as many as Kubernetes tells."""

# msgspec takes integers of any size; only a document with so many digits in a row can hold one that is too large.
_DIGITS_AS_ZEROS = bytes(ord("0") if letter in b"0123456789" else letter for letter in range(256))
_MANY_DIGITS = b"0" * 19

_encoder = msgspec.json.Encoder(enc_hook=encode_value)


class DecodeError(ValueError):
    """The bytes are not JSON, or not JSON that dray can hold."""


class Reading(msgspec.Struct, Generic[T], frozen=True):
    """The outcome of `read`: the object, unless `errors` says why there is none.

    `unknown` and `duplicates` are paths of fields that the type does not have (they were dropped) and of fields that
    stand twice in one JSON object (the last one counts).
    """

    obj: T | None
    errors: tuple[FieldError, ...] = ()
    unknown: tuple[str, ...] = ()
    duplicates: tuple[str, ...] = ()

    @property
    def problems(self) -> list[str]:
        """Everything that is wrong, for a file that must be understood in full: unknown fields count, too."""
        return [*map(str, self.errors), *(f"{path}: unknown field" for path in self.unknown)]


_decoders: dict[type, msgspec.json.Decoder[Any]] = {}


def _decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.json.Decoder(kind, dec_hook=decode_value)
    return decoder


def is_prepared(kind: type[Any]) -> bool:
    """Whether an object of a type was read before: the first takes tens of milliseconds, however small it is."""
    return kind in _decoders


def encode(obj: Any) -> bytes:
    """An object as JSON bytes; equal objects give equal bytes."""
    if obj.__class__ is CustomObject:
        return _encoder.encode(obj.document())
    data = _encoder.encode(obj)
    paths = getattr(obj, "null_when_empty", ())
    if paths and b"[]" in data and any(_has_empty(obj, path) for path in paths):
        return _with_nulls(data, paths)
    return data


def _has_empty(value: Any, path: tuple[str, ...]) -> bool:
    """Whether an empty list stands at the end of a path, which leads through all elements of the lists on its way."""
    for number, name in enumerate(path):
        if isinstance(value, tuple):
            return any(_has_empty(item, path[number:]) for item in value)
        if value is None:
            return False
        value = getattr(value, name)
    return isinstance(value, tuple) and not value


def _with_nulls(data: bytes, paths: tuple[tuple[str, ...], ...]) -> bytes:
    document = msgspec.json.decode(data)
    for path in paths:
        _put_nulls(document, path)
    return msgspec.json.encode(document)


def _put_nulls(value: Any, path: tuple[str, ...]) -> None:
    if isinstance(value, list):
        for item in value:
            _put_nulls(item, path)
    elif isinstance(value, dict) and len(path) > 1:
        _put_nulls(value.get(path[0]), path[1:])
    elif isinstance(value, dict) and value.get(path[0]) == []:
        value[path[0]] = None


def decode(data: bytes, kind: type[T]) -> T:
    """Bytes that `encode` made, as an object. Raises DecodeError for anything else."""
    if kind is CustomObject:
        return cast(T, custom_object(parse_json(data)))
    try:
        return _decoder(kind).decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reading = read(parse_json(data), kind)
        if reading.obj is None or reading.unknown:
            raise DecodeError(str(error)) from error
        return reading.obj


def to_builtins(obj: Any) -> Any:
    """An object as plain dicts, lists and scalars, as JSON would have it."""
    return msgspec.json.decode(encode(obj) if obj.__class__ is CustomObject else _encoder.encode(obj))


def custom_object(document: dict[str, Any]) -> CustomObject:
    """A document as a custom object, which takes over what the document holds. Raises DecodeError."""
    content = dict(document)
    kind, api_version = content.pop("kind", ""), content.pop("apiVersion", "")
    try:
        meta = msgspec.convert(content.pop("metadata", {}), ObjectMeta, dec_hook=decode_value)
    except msgspec.ValidationError as error:
        raise DecodeError(f"metadata: {error}") from None
    return CustomObject(kind=kind, api_version=api_version, metadata=meta, content=content)


def parse_json(data: bytes) -> Any:
    """Any JSON as plain Python values. Raises DecodeError, also for JSON nested too deeply."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DecodeError(str(error)) from error
    except RecursionError:
        raise DecodeError("JSON is nested too deeply") from None


def read_json(data: bytes, kind: type[T], *, find_duplicates: bool = True) -> Reading[T]:
    """Someone else's bytes as an object. Raises DecodeError if they are not JSON."""
    twice = duplicate_fields(data) if find_duplicates else ()
    obj = _try_decode(data, kind)
    if obj is not None:
        return Reading(obj, duplicates=twice)
    return msgspec.structs.replace(_walk(parse_json(data), kind), duplicates=twice)


def read(value: Any, kind: type[T]) -> Reading[T]:
    """Plain values (from JSON or YAML) as an object, with every problem found on the way."""
    try:
        obj = _try_decode(_encoder.encode(value), kind)
    except (TypeError, ValueError, OverflowError, RecursionError):
        obj = None
    return _walk(value, kind) if obj is None else Reading(obj)


def may_overflow(data: bytes) -> bool:
    """Whether there may be a number in a document that is too large for 64 bits."""
    return _MANY_DIGITS in data.translate(_DIGITS_AS_ZEROS)  # a fifteenth of the time of a regular expression


def _try_decode(data: bytes, kind: type[T]) -> T | None:
    if may_overflow(data):
        return None
    try:
        return _decoder(kind).decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _walk(value: Any, kind: type[T]) -> Reading[T]:
    walk = _Walk(bare_quantities=kind.__module__ == v1beta1.__name__)
    cleaned = walk.clean(value, _shape(kind), _TOP)
    unknown = tuple(walk.unknown)
    if walk.errors:
        return Reading(None, errors=tuple(walk.errors), unknown=unknown)
    try:
        return Reading(msgspec.convert(cleaned, kind, dec_hook=decode_value), unknown=unknown)
    except msgspec.ValidationError as error:
        return Reading(None, errors=(FieldError(Reason.TYPE_INVALID, "", str(error)),), unknown=unknown)


def _shape(kind: Any) -> inspect.Type:
    """What a type is made of, down to structs: what is in those is found when there is a value, by `_fields`.

    All that is in a pod takes tens of milliseconds to find, and whoever sends the first wrong one would keep the event
    loop for so long.
    """
    parts = get_args(kind)
    match get_origin(kind):
        case types.UnionType | typing.Union:
            return inspect.UnionType(tuple(_shape(part) for part in parts))
        case builtins.tuple:
            return inspect.VarTupleType(_shape(parts[0]))
        case builtins.dict:
            return inspect.DictType(_shape(parts[0]), _shape(parts[1]))
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return inspect.StructType(kind, ())
    return inspect.type_info(kind)


class _Place(NamedTuple):
    """Where the walk is: a step of a path, after the steps before it. Written out only for what is told.

    `dotted` is how the path of an unknown field has the step: Kubernetes writes keys of maps with brackets in all paths
    but these.
    """

    before: _Place | None
    step: str
    dotted: str = ""

    def path(self, *, dotted: bool = False) -> str:
        steps = []
        place: _Place | None = self
        while place is not None:
            steps.append(place.dotted or place.step if dotted else place.step)
            place = place.before
        return "".join(reversed(steps)).removeprefix(".")


_TOP = _Place(None, "")


_FORMS: dict[type[inspect.Type], tuple[type, ...]] = {
    inspect.StructType: (dict,),
    inspect.VarTupleType: (list, tuple),
    inspect.BoolType: (bool,),
}
"""What JSON has for those types of a union that can be told apart by it."""


class _Walk:
    """Compares plain values with a type: keeps what fits, notes what does not, up to `MOST_PROBLEMS` of a sort."""

    def __init__(self, *, bare_quantities: bool) -> None:
        self.errors: list[FieldError] = []
        self.unknown: list[str] = []
        self.depth = 0
        self.bare_quantities = bare_quantities

    def clean(self, value: Any, kind: inspect.Type, place: _Place) -> Any:
        """`value` without nulls and unknown fields; meaningless (but harmless) where an error was noted."""
        self.depth += 1
        try:
            if self.depth > MAX_DEPTH:
                return self._wrong(place, value, "less nesting")
            return self._clean(value, kind, place)
        finally:
            self.depth -= 1

    def _clean(self, value: Any, kind: inspect.Type, place: _Place) -> Any:
        match kind:
            case inspect.UnionType():
                return self._union(value, kind, place)
            case inspect.StructType():
                return self._struct(value, kind, place)
            case inspect.DictType():
                return self._map(value, kind, place)
            case inspect.VarTupleType():
                return self._list(value, kind.item_type, place)
            case inspect.CustomType():
                return self._custom(value, kind.cls, place)
            case inspect.IntType():
                return self._int(value, place)
            case inspect.FloatType():
                fits = isinstance(value, int | float) and not isinstance(value, bool)
                return value if fits else self._wrong(place, value, "a number")
            case inspect.BoolType():
                return value if isinstance(value, bool) else self._wrong(place, value, "true or false")
            case inspect.StrType():
                return value if isinstance(value, str) else self._wrong(place, value, "a string")
        return value

    def _union(self, value: Any, kind: inspect.UnionType, place: _Place) -> Any:
        if value is None:
            return None
        options = [option for option in kind.types if not isinstance(option, inspect.NoneType)]
        if len(options) == 1:
            return self.clean(value, options[0], place)
        if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        for option in options:
            if isinstance(value, _FORMS.get(type(option), ())):
                return self.clean(value, option, place)
        return self._wrong(place, value, "an integer or a string")

    def _struct(self, value: Any, kind: inspect.StructType, place: _Place) -> Any:
        if self.bare_quantities and kind.cls is DeviceCapacity and isinstance(value, str | int):
            value = {"value": value}  # as the manifests of KEP-4381 write it, which are v1beta1 (SVS-34)
        if not isinstance(value, dict):
            return self._wrong(place, value, "an object")
        fields = _fields(kind.cls)
        cleaned = {}
        for name, item in value.items():
            field_type = fields.get(name)
            if field_type is None:
                if len(self.unknown) < MOST_PROBLEMS:
                    self.unknown.append(_Place(place, f".{name}").path(dotted=True))
            elif item is not None or isinstance(field_type, inspect.AnyType):
                cleaned[name] = self.clean(item, field_type, _Place(place, f".{name}"))
        return cleaned

    def _map(self, value: Any, kind: inspect.DictType, place: _Place) -> Any:
        if not isinstance(value, dict):
            return self._wrong(place, value, "an object")
        cleaned = {}
        for name, item in value.items():
            if item is None:
                item = _zero(kind.value_type)
            cleaned[str(name)] = self.clean(item, kind.value_type, _Place(place, key_path("", str(name)), f".{name}"))
        return cleaned

    def _list(self, value: Any, item_type: inspect.Type, place: _Place) -> Any:
        if not isinstance(value, list | tuple):
            return self._wrong(place, value, "a list")
        return [
            self.clean(_zero(item_type) if item is None else item, item_type, _Place(place, f"[{index}]"))
            for index, item in enumerate(value)
        ]

    def _custom(self, value: Any, kind: type, place: _Place) -> Any:
        if not isinstance(value, str) and not (kind is Quantity and _is_number(value)):
            return self._wrong(place, value, _CUSTOM.get(kind, "an RFC 3339 time"))
        try:
            return str(decode_value(kind, value))
        except ValueError as error:
            self._note(place, f"Invalid type: {error}")
            return None

    def _int(self, value: Any, place: _Place) -> Any:
        if isinstance(value, bool) or not isinstance(value, int):
            return self._wrong(place, value, "an integer")
        if not INT64_MIN <= value <= INT64_MAX:
            return self._wrong(place, value, "an integer of 64 bits")
        return value

    def _wrong(self, place: _Place, value: Any, wanted: str) -> None:
        self._note(place, f"Invalid type: {_describe(value)}: must be {wanted}")

    def _note(self, place: _Place, message: str) -> None:
        if len(self.errors) < MOST_PROBLEMS:
            self.errors.append(FieldError(Reason.TYPE_INVALID, place.path(), message))


_CUSTOM = {Quantity: "a quantity", Base64: "base64"}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _describe(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    try:
        return shown(value)
    except (TypeError, ValueError, OverflowError):
        return str(value)[:80]


def _zero(kind: inspect.Type) -> Any:
    """What null means inside a list or map: the zero value of the type."""
    match kind:
        case inspect.StructType() | inspect.DictType():
            return {}
        case inspect.StrType():
            return ""
        case inspect.IntType() | inspect.FloatType():
            return 0
        case inspect.BoolType():
            return False
        case inspect.CustomType():
            return "0" if kind.cls is Quantity else ""
    return None


@cache
def _fields(kind: type[msgspec.Struct]) -> dict[str, inspect.Type]:
    """JSON name → type of a struct's fields."""
    return {entry.encode_name: _shape(entry.type) for entry in msgspec.structs.fields(kind)}


class _Doubled(dict[str, Any]):
    """A JSON object in which some names stood more than once."""

    names: tuple[str, ...] = ()


_UNREAD: Any = object()


def _surely_unique(data: bytes, document: Any) -> bool:
    """Whether no field stands twice; False if that is not certain.

    Reading JSON and writing it again loses no colon but those of repeated fields: one after each name, and those in
    texts, which stand for themselves unless they are written as numbers. Counting them is many times faster than
    looking at every field.
    """
    if b"\\u003" in data:
        return False
    try:
        again = msgspec.json.encode(msgspec.json.decode(data) if document is _UNREAD else document)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return data.count(b":") == again.count(b":")


def _doubled(names: Iterable[str]) -> tuple[str, ...]:
    """Those that come again, each time that they do."""
    seen: set[str] = set()
    again = []
    for name in names:
        if name in seen:
            again.append(name)
        seen.add(name)
    return tuple(again)


def duplicate_fields(data: bytes, document: Any = _UNREAD) -> tuple[str, ...]:
    """Paths of the fields that stand more than once in one JSON object. Raises DecodeError if it is not JSON.

    Whoever has read the data already gives the `document`.
    """
    if _surely_unique(data, document):
        return ()
    found = False

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal found
        plain = dict(pairs)
        if len(plain) == len(pairs):
            return plain
        found = True
        doubled = _Doubled(plain)
        doubled.names = _doubled(name for name, _ in pairs)
        return doubled

    try:
        tree = json.loads(data, object_pairs_hook=build)
    except RecursionError:
        raise DecodeError("JSON is nested too deeply") from None
    except ValueError as error:
        raise DecodeError(str(error)) from error
    return tuple(islice(_doubled_paths(tree), MOST_PROBLEMS)) if found else ()


def _doubled_paths(tree: Any) -> Iterator[str]:
    """The paths of repeated fields, those of an object before those inside of it."""
    waiting: list[tuple[Any, _Place]] = [(tree, _TOP)]
    while waiting:
        value, place = waiting.pop()
        if isinstance(value, dict):
            if isinstance(value, _Doubled):
                yield from (_Place(place, f".{name}").path() for name in dict.fromkeys(value.names))
            waiting += [(part, _Place(place, f".{name}")) for name, part in reversed(value.items())]
        elif isinstance(value, list):
            waiting += [(part, _Place(place, f"[{index}]")) for index, part in reversed(tuple(enumerate(value)))]
