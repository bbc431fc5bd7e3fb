"""From a protobuf body to the plain value that JSON would have given."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import msgspec
from google.protobuf.message import DecodeError

from dray.api import codec, wire
from dray.api.wire import MAGIC, MEDIA_TYPE, WireError
from dray.server.protobuf import tables
from dray.server.protobuf.descriptors import RECURSIVE, message_class

MOST_FIELDS = 200_000
"""What one body may hold, so that a few bytes per field cannot become much memory."""
DEEPEST = 200

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def decode(body: bytes) -> dict[str, Any]:
    """The object in a body. Raises WireError for bytes that make no sense, UnknownMessage for other kinds."""
    if not body.startswith(MAGIC):
        raise WireError("the body does not start as Kubernetes' protobuf does")
    api_version, kind, raw = _open(memoryview(body)[len(MAGIC) :])
    name = tables.name_of(api_version, kind)
    return {"apiVersion": api_version, "kind": kind, **_Reader().bytes(name, bytes(raw))}


def _open(data: memoryview) -> tuple[str, str, memoryview]:
    """Takes the object out of its envelope, runtime.Unknown."""
    names = {1: "", 2: ""}
    raw = memoryview(b"")
    for number, encoding, value in wire.fields(data):
        if number not in (1, 2, 4):
            continue
        part = _bytes(encoding, value)
        if number == 2:
            raw = part
        elif number == 1:
            names |= {of: _text(_bytes(how, text)) for of, how, text in wire.fields(part) if of in names}
        elif bytes(part) not in (b"", MEDIA_TYPE.encode()):
            raise WireError("the envelope holds something else than protobuf")
    return names[1], names[2], raw


def _bytes(encoding: int, value: int | memoryview) -> memoryview:
    if encoding != wire.BYTES or isinstance(value, int):
        raise WireError(f"bytes are expected, not encoding {encoding}")
    return value


def _text(data: memoryview) -> str:
    try:
        return bytes(data).decode()
    except UnicodeDecodeError:
        raise WireError("text is not UTF-8") from None


class _Reader:
    """Reads one body, and counts what is in it."""

    def __init__(self) -> None:
        self._left = MOST_FIELDS
        self._depth = 0

    def bytes(self, name: str, data: bytes) -> dict[str, Any]:
        """The value in the bytes of a message. Schemas hold schemas: nesting needs a bound. Raises WireError."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise WireError(f"messages are nested deeper than {DEEPEST} levels")
        try:
            parsed = message_class(name).FromString(data)
        except DecodeError as error:
            raise WireError(str(error)) from None
        made = self.message(name, parsed)
        self._depth -= 1
        return made

    def message(self, name: str, parsed: Any) -> dict[str, Any]:
        """A message as an object; fields that nobody knows are left out, as protobuf wants it."""
        made: dict[str, Any] = {}
        rules = _rules(name)
        present = parsed.ListFields()
        self._count(len(present))
        for descriptor, value in present:
            rule = rules[descriptor.number]
            if rule.plain:
                made[rule.name] = value
            elif rule.many == "+":
                made |= self.message(rule.type, value)
            elif rule.many == "*":
                self._count(len(value))
                made[rule.name] = [self._value(rule, item) for item in value]
            elif rule.many == "@":
                self._count(len(value))
                made[rule.name] = {key: self._value(rule, item) for key, item in value.items()}
            else:
                made[rule.name] = self._value(rule, value)
        return made

    def _count(self, fields: int) -> None:
        self._left -= fields
        if self._left < 0:
            raise WireError(f"more than {MOST_FIELDS} fields")

    def _value(self, rule: _Rule, value: Any) -> Any:
        if rule.convert is not None:
            return rule.convert(value)
        if rule.type in tables.VALUES:
            return value
        if rule.type in RECURSIVE:
            return self.bytes(rule.type, value)
        found = self.message(rule.type, value)
        # A message with one field for each form that JSON's value may have stands for the last one that is set.
        return next(reversed(found.values()), None) if rule.is_alternative else found


class _Rule(msgspec.Struct, frozen=True):
    """How one field becomes JSON's value."""

    name: str
    type: str
    many: str
    plain: bool
    """Whether the runtime has the value as JSON has it."""
    convert: Callable[[Any], Any] | None
    is_alternative: bool


@cache
def _rules(name: str) -> dict[int, _Rule]:
    return {field.number: _rule(field) for field in tables.message(name)}


def _rule(field: tables.Field) -> _Rule:
    return _Rule(
        name=field.name,
        type=field.type,
        many=field.many,
        plain=not field.many and field.type in ("text", "int", "bool"),
        convert=_CONVERTERS.get(field.type),
        is_alternative=".JSONSchemaPropsOr" in field.type,
    )


def _json(value: Any) -> Any:
    if not value.raw:
        return None
    try:
        return codec.parse_json(value.raw)
    except codec.DecodeError as error:
        raise WireError(f"embedded JSON: {error}") from None


def _time(value: Any, *, spec: str = "seconds") -> str | None:
    """A point in time as RFC 3339; an empty message is no time at all."""
    if not value.ListFields():
        return None
    try:
        when = EPOCH + timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
    except OverflowError:
        raise WireError("a time is out of range") from None
    return when.isoformat(timespec=spec).replace("+00:00", "Z")


def _int_or_string(value: Any) -> int | str:
    """Type 0 is a number, type 1 text."""
    found: int | str = value.intVal if value.type == 0 else value.strVal
    return found


def _double(value: float) -> int | float:
    """A whole number, if it is one."""
    return int(value) if value.is_integer() else value


_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "double": _double,
    "bytes": lambda value: base64.b64encode(value).decode(),
    "time": _time,
    "microtime": lambda value: _time(value, spec="microseconds"),
    "quantity": lambda value: value.string,
    "json": _json,
    "int-or-string": _int_or_string,
    "texts": lambda value: list(value.items),
}
