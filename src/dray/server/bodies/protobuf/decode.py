"""From a protobuf body to the plain value that JSON would have given."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

from dray.api import codec
from dray.server.bodies.protobuf import wire
from dray.server.bodies.protobuf.messages import KINDS, MESSAGES, ONE_OF, SCALARS, Field, Message
from dray.server.bodies.protobuf.wire import WireError

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\x00"
MOST_FIELDS = 200_000
"""What one body may hold, so that a few bytes per field cannot become much memory."""
DEEPEST = 200

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TYPE_META: Message = {1: Field("apiVersion", "text"), 2: Field("kind", "text")}


class UnknownMessage(LookupError):
    """A kind that is not read in protobuf."""

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(f"{kind or 'an object without kind'} of {api_version or 'no version'}")


def decode(body: bytes) -> dict[str, Any]:
    """The object in a body. Raises WireError for bytes that make no sense, UnknownMessage for other kinds."""
    if not body.startswith(MAGIC):
        raise WireError("the body does not start as Kubernetes' protobuf does")
    api_version, kind, raw = _open(memoryview(body)[len(MAGIC) :])
    message = MESSAGES["DeleteOptions"] if kind == "DeleteOptions" else KINDS.get((api_version, kind))
    if message is None:
        raise UnknownMessage(api_version, kind)
    return {"apiVersion": api_version, "kind": kind, **_Reader().message(raw, message)}


def _open(data: memoryview) -> tuple[str, str, memoryview]:
    """Takes the object out of its envelope, runtime.Unknown."""
    api_version = kind = ""
    raw = memoryview(b"")
    reader = _Reader()
    for number, encoding, value in wire.fields(data):
        if number not in (1, 2, 4):
            continue
        part = _bytes(encoding, value)
        if number == 2:
            raw = part
        elif number == 1:
            named = reader.message(part, _TYPE_META)
            api_version, kind = named.get("apiVersion", ""), named.get("kind", "")
        elif bytes(part) not in (b"", MEDIA_TYPE.encode()):
            raise WireError("the envelope holds something else than protobuf")
    return api_version, kind, raw


class _Reader:
    """Reads one body. Schemas hold schemas, so that nesting needs a bound."""

    def __init__(self) -> None:
        self._left = MOST_FIELDS
        self._depth = 0

    def message(self, data: memoryview, message: Message) -> dict[str, Any]:
        """A message as an object; fields that nobody knows are skipped, as protobuf wants it."""
        made: dict[str, Any] = {}
        self._depth += 1
        if self._depth > DEEPEST:
            raise WireError(f"messages are nested deeper than {DEEPEST} levels")
        for number, encoding, value in wire.fields(data):
            self._left -= 1
            if self._left < 0:
                raise WireError(f"more than {MOST_FIELDS} fields")
            field = message.get(number)
            if field is not None:
                self._add(made, field, encoding, value)
        self._depth -= 1
        return made

    def _add(self, made: dict[str, Any], field: Field, encoding: int, value: int | memoryview) -> None:
        if field.many == "@":
            key, item = self._entry(_bytes(encoding, value), field.type)
            made.setdefault(field.name, {})[key] = item
        elif field.many == "*":
            made.setdefault(field.name, []).append(self._value(field.type, encoding, value))
        elif field.many == "+":
            made |= self.message(_bytes(encoding, value), MESSAGES[field.type])
        else:
            made[field.name] = self._value(field.type, encoding, value)

    def _entry(self, data: memoryview, kind: str) -> tuple[str, Any]:
        """One pair of a map; what is missing is empty."""
        key = ""
        item = self._value(kind, wire.BYTES, memoryview(b""))
        for number, encoding, value in wire.fields(data):
            if number == 1:
                key = _text(_bytes(encoding, value))
            elif number == 2:
                item = self._value(kind, encoding, value)
        return key, item

    def _value(self, kind: str, encoding: int, value: int | memoryview) -> Any:
        if kind == "double":
            return wire.double(_eight(encoding, value))
        if kind in ("int", "bool"):
            if not isinstance(value, int):
                raise WireError(f"a number is expected, not encoding {encoding}")
            return bool(value) if kind == "bool" else wire.signed(value)
        data = _bytes(encoding, value)
        if kind in SCALARS:
            return _scalar(kind, data)
        found = self.message(data, MESSAGES[kind])
        return found if kind not in ONE_OF else next(reversed(found.values()), None)


def _eight(encoding: int, value: int | memoryview) -> memoryview:
    if encoding != wire.FIXED64 or isinstance(value, int):
        raise WireError(f"a number of 64 bits is expected, not encoding {encoding}")
    return value


def _bytes(encoding: int, value: int | memoryview) -> memoryview:
    if encoding != wire.BYTES or isinstance(value, int):
        raise WireError(f"bytes are expected, not encoding {encoding}")
    return value


def _text(data: memoryview) -> str:
    try:
        return bytes(data).decode()
    except UnicodeDecodeError:
        raise WireError("text is not UTF-8") from None


def _scalar(kind: str, data: memoryview) -> Any:
    match kind:
        case "text":
            return _text(data)
        case "bytes":
            return base64.b64encode(data).decode()
        case "time" | "microtime":
            return _time(data, micro=kind == "microtime")
        case "quantity":
            return _text(_first(data, 1))
        case "json":
            return _json(_first(data, 1))
        case "texts":
            return [_text(_bytes(encoding, value)) for number, encoding, value in wire.fields(data) if number == 1]
        case _:
            return _int_or_string(data)


def _first(data: memoryview, wanted: int) -> memoryview:
    """The last value of a field, as protobuf counts it; empty if absent."""
    found = memoryview(b"")
    for number, encoding, value in wire.fields(data):
        if number == wanted:
            found = _bytes(encoding, value)
    return found


def _json(data: memoryview) -> Any:
    if not data:
        return None
    try:
        return codec.parse_json(bytes(data))
    except codec.DecodeError as error:
        raise WireError(f"embedded JSON: {error}") from None


def _numbers(data: memoryview) -> dict[int, int]:
    return {number: wire.signed(value) for number, _, value in wire.fields(data) if isinstance(value, int)}


def _time(data: memoryview, *, micro: bool) -> str | None:
    """A point in time as RFC 3339; an empty message is no time at all."""
    if not data:
        return None
    parts = _numbers(data)
    try:
        when = _EPOCH + timedelta(seconds=parts.get(1, 0), microseconds=parts.get(2, 0) // 1000)
    except OverflowError:
        raise WireError("a time is out of range") from None
    return when.isoformat(timespec="microseconds" if micro else "seconds").replace("+00:00", "Z")


def _int_or_string(data: memoryview) -> int | str:
    """Type 0 is a number, type 1 text."""
    parts = _numbers(data)
    return parts.get(2, 0) if parts.get(1, 0) == 0 else _text(_first(data, 3))
