"""From an answer in JSON to the same answer in protobuf."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import msgspec

from dray.api import schema
from dray.api.schema.facts import META_PACKAGE
from dray.api.text_memory import remember_texts
from dray.api.wire import MAGIC, bytes_field
from dray.server.protobuf import tables
from dray.server.protobuf.descriptors import RECURSIVE, identifier, message_class
from dray.server.protobuf.read import EPOCH
from dray.server.protobuf.tables import Field

Change = Callable[[Any], Any]

_SECOND = timedelta(seconds=1)
_NO_ENCODING = bytes_field(3, b"") + bytes_field(4, b"")


class _Head(msgspec.Struct, rename="camel"):
    """What tells what is in an answer; the items of a list stay as they are, to be written one by one."""

    kind: str = ""
    api_version: str = ""
    metadata: msgspec.Raw = msgspec.Raw(b"{}")
    items: list[msgspec.Raw] | None = None


_heads = msgspec.json.Decoder(_Head)


class _Named(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""


_names = msgspec.json.Decoder(_Named)


def name_in(data: bytes) -> tuple[str, str]:
    """The version and the kind that an answer in JSON says it is of; empty texts if it says nothing."""
    try:
        named = _names.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return "", ""
    return named.api_version, named.kind


def from_json(data: bytes) -> bytes:
    """An object or a list, in its envelope. Raises UnknownMessage for kinds that have no form in protobuf."""
    api_version, kind = name_in(data)
    name = tables.name_of(api_version, kind)
    raw = _list(name, data) if kind.endswith("List") else encode(name, msgspec.json.decode(data))
    return _enveloped(api_version, kind, raw)


def list_of(api_version: str, kind: str, metadata: bytes, items: Iterable[bytes]) -> bytes:
    """A list of so many objects in JSON, in its envelope, without their ever being one text.

    Raises UnknownMessage for kinds that have no form in protobuf.
    """
    field = _items_of(tables.name_of(api_version, kind))
    assert field is not None
    return _enveloped(api_version, kind, _joined(metadata, field, items))


def _enveloped(api_version: str, kind: str, raw: bytes) -> bytes:
    named = bytes_field(1, api_version.encode()) + bytes_field(2, kind.encode())
    return b"".join((MAGIC, bytes_field(1, named), bytes_field(2, raw), _NO_ENCODING))


def frame(kind: bytes, data: bytes) -> bytes:
    """An event of a watch, which goes over the wire after its length."""
    event = bytes_field(1, kind) + bytes_field(2, bytes_field(1, from_json(data)))
    return len(event).to_bytes(4, "big") + event


def encode(name: str, value: dict[str, Any]) -> bytes:
    """A plain value, which is used up, as a message by its full name."""
    made: bytes = message_class(name)(**_fixer(name)(value)).SerializeToString()
    return made


def _list(name: str, data: bytes) -> bytes:
    """A list, item by item: one that is long must not keep the interpreter to itself."""
    items = _items_of(name)
    if items is None:
        return encode(name, msgspec.json.decode(data))
    head = _heads.decode(data)
    return _joined(head.metadata, items, head.items or ())


def _items_of(name: str) -> Field | None:
    """The field with the objects of a list; None if there is none, or if they are no messages."""
    found = next((field for field in tables.message(name) if field.name == "items"), None)
    return None if found is None or found.type in tables.VALUES else found


def _joined(metadata: msgspec.Raw | bytes, field: Field, items: Iterable[msgspec.Raw | bytes]) -> bytes:
    decode, of = msgspec.json.decode, field.type
    parts = [bytes_field(1, encode(f"{META_PACKAGE}.ListMeta", decode(metadata)))]
    parts += [bytes_field(field.number, encode(of, decode(item))) for item in items]
    return b"".join(parts)


class _Step(msgspec.Struct, frozen=True):
    """A field that JSON writes in another way than the runtime takes it."""

    name: str
    to: str
    change: Change


class _Spread(msgspec.Struct, frozen=True):
    """Fields that JSON has one level higher."""

    to: str
    names: frozenset[str]
    change: Change


@cache
def _fixer(name: str) -> Change:
    """Puts into its place what JSON writes in another way; does so in the value that it is given."""
    fields = tables.message(name)
    steps = [step for field in fields if field.many != "+" and (step := _step(field)) is not None]
    spreads = [
        _Spread(identifier(field.name), frozenset(tables.flat(field.type)), _fixer(field.type))
        for field in fields
        if field.many == "+"
    ]
    dropped = _without_number(name)

    def fix(value: dict[str, Any]) -> dict[str, Any]:
        for gone in dropped:
            value.pop(gone, None)
        for step in steps:
            if (found := value.get(step.name)) is not None:
                del value[step.name]
                value[step.to] = step.change(found)
        for spread in spreads:
            if names := spread.names & value.keys():
                value[spread.to] = spread.change({one: value.pop(one) for one in names})
        return value

    return fix


def _without_number(name: str) -> tuple[str, ...]:
    """What JSON says and protobuf does not: the envelope has kind and version, and our own additions have no number."""
    try:
        known = set(schema.definition(name).properties)
    except schema.UnknownDefinitionError:
        known = set()
    return tuple(sorted((known | {"apiVersion", "kind"}) - set(tables.flat(name))))


def _step(field: Field) -> _Step | None:
    to, change = identifier(field.name), _change(field.type)
    if change is None:
        return None if to == field.name else _Step(field.name, to, lambda value: value)
    return _Step(field.name, to, _for_all(field.many, change))


def _for_all(many: str, change: Change) -> Change:
    match many:
        case "*":
            return lambda values: [change(value) for value in values]
        case "@":
            return lambda values: {key: change(value) for key, value in values.items()}
    return change


def _change(kind: str) -> Change | None:
    """What makes of JSON's form of a value the one that the runtime takes; None if they are the same."""
    if kind in _CHANGES:
        return _CHANGES[kind]
    if kind in tables.VALUES:
        return None
    if kind in RECURSIVE:
        return lambda value: encode(kind, value)
    if kind.rpartition(".")[2] in _ALTERNATIVES:
        return _alternative(kind)
    return _fixer(kind)


_ALTERNATIVES = frozenset(("JSONSchemaPropsOrArray", "JSONSchemaPropsOrBool", "JSONSchemaPropsOrStringArray"))
"""Messages with one field for each form that JSON's value may have."""


def _alternative(kind: str) -> Change:
    schema_kind = f"{kind.rpartition('.')[0]}.JSONSchemaProps"

    def choose(value: Any) -> dict[str, Any]:
        if isinstance(value, bool):
            return {"allows": value}
        if isinstance(value, dict):
            made: dict[str, Any] = {"schema": encode(schema_kind, value)}
            return made | {"allows": True} if kind.endswith("OrBool") else made
        if kind.endswith("OrStringArray"):
            return {"property": value}
        return {"jSONSchemas": [encode(schema_kind, item) for item in value]}

    return choose


@remember_texts(4096)
def _time(text: str) -> dict[str, int]:
    since = datetime.fromisoformat(text) - EPOCH
    return {"seconds": since // _SECOND, "nanos": since.microseconds * 1000}


def _int_or_string(value: int | str) -> dict[str, Any]:
    return {"type": 0, "intVal": value} if isinstance(value, int) else {"type": 1, "strVal": value}


_CHANGES: dict[str, Change] = {
    "bytes": base64.b64decode,
    "time": _time,
    "microtime": _time,
    "quantity": lambda value: {"string": str(value)},
    "json": lambda value: {"raw": msgspec.json.encode(value)},
    "int-or-string": _int_or_string,
    "texts": lambda value: {"items": value},
}
