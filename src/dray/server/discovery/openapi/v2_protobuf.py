"""The OpenAPI 2 document in protobuf, the only form that kubectl before 1.27 reads.

The field numbers are those of the published message types (openapi.v2.Document and below). Vendor extensions and
defaults travel as YAML text, of which JSON is a part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from dray.api.wire import bytes_field, number_field

Plain = Mapping[str, Any]
Encode = Callable[[Any], bytes]

_VENDOR_PREFIX = "x-"


def _text(value: str) -> bytes:
    return value.encode()


def _flag(number: int, value: bool) -> bytes:
    return number_field(number, int(value))


def _any(value: Any) -> bytes:
    return bytes_field(2, msgspec.json.encode(value) + b"\n")


def _named(number: int, entries: Plain, encode: Encode) -> bytes:
    """A map, which is written as repeated pairs of name and value."""
    pairs = (bytes_field(1, name.encode()) + bytes_field(2, encode(value)) for name, value in entries.items())
    return b"".join(bytes_field(number, pair) for pair in pairs)


def _vendor(number: int, value: Plain) -> bytes:
    return _named(number, {name: one for name, one in value.items() if name.startswith(_VENDOR_PREFIX)}, _any)


class _Message:
    """A message type: which keys of a JSON object go to which fields, and how their values are encoded."""

    def __init__(self, *, vendor: int = 0) -> None:
        self._vendor = vendor
        self._fields: dict[str, Callable[[Any], bytes]] = {}

    def texts(self, **numbers: int) -> _Message:
        """Strings and lists of strings."""
        for name, number in numbers.items():
            self._fields[name.strip("_")] = _repeatable(number, _text)
        return self

    def flags(self, **numbers: int) -> _Message:
        """Booleans."""
        for name, number in numbers.items():
            self._fields[name] = partial(_flag, number)
        return self

    def parts(self, number: int, encode: Encode, *names: str) -> _Message:
        """Messages and lists of messages."""
        for name in names:
            self._fields[name] = _repeatable(number, encode)
        return self

    def __call__(self, value: Plain) -> bytes:
        made = [self._fields[name](one) for name, one in value.items() if name in self._fields]
        if self._vendor:
            made.append(_vendor(self._vendor, value))
        return b"".join(made)


def _repeatable(number: int, encode: Encode) -> Encode:
    def field(value: Any) -> bytes:
        values = value if isinstance(value, list) else [value]
        return b"".join(bytes_field(number, encode(one)) for one in values)

    return field


def _boxed(encode: Encode) -> Encode:
    """A value inside a message that has nothing else, such as one arm of a choice."""
    return lambda value: bytes_field(1, encode(value))


def _schema(value: Plain) -> bytes:
    return _SCHEMA(value)


def _properties(value: Plain) -> bytes:
    return _named(1, value, _schema)


_SCHEMA = (
    _Message(vendor=31)
    .texts(format=2, description=4, required=19)
    .parts(1, _text, "$ref")
    .parts(5, _any, "default")
    .parts(20, _any, "enum")
    .parts(21, _boxed(_schema), "additionalProperties")
    .parts(22, _boxed(_text), "type")
    .parts(23, _boxed(_schema), "items")
    .parts(25, _properties, "properties")
)
_BODY_PARAMETER = _Message().texts(description=1, name=2, in_=3).flags(required=4).parts(5, _schema, "schema")
_QUERY_PARAMETER = _Message().texts(in_=2, description=3, name=4, type=6).flags(required=1, uniqueItems=20)
_PATH_PARAMETER = _Message().texts(in_=2, description=3, name=4, type=5).flags(required=1, uniqueItems=19)


def _parameter(value: Plain) -> bytes:
    """A parameter item: a choice in a choice in a choice."""
    if value["in"] == "body":
        return bytes_field(1, bytes_field(1, _BODY_PARAMETER(value)))
    if value["in"] == "path":
        arm = bytes_field(4, _PATH_PARAMETER(value))
    else:
        arm = bytes_field(3, _QUERY_PARAMETER(value))
    return bytes_field(1, bytes_field(2, arm))


_RESPONSE = _Message().texts(description=1).parts(2, _boxed(_schema), "schema")


def _responses(value: Plain) -> bytes:
    return _named(1, value, _boxed(_RESPONSE))


_OPERATION = (
    _Message(vendor=13)
    .texts(tags=1, description=3, operationId=5, produces=6, consumes=7, schemes=10)
    .parts(8, _parameter, "parameters")
    .parts(9, _responses, "responses")
)
_METHODS = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}
_PATH_ITEM = _Message().parts(9, _parameter, "parameters")
for _method, _number in _METHODS.items():
    _PATH_ITEM.parts(_number, _OPERATION, _method)

_INFO = _Message().texts(title=1, version=2)


def _paths(value: Plain) -> bytes:
    return _named(2, value, _PATH_ITEM)


_DOCUMENT = (
    _Message().texts(swagger=1).parts(2, _INFO, "info").parts(8, _paths, "paths").parts(9, _properties, "definitions")
)


def encode_document(document: Plain) -> bytes:
    """A document that `documents.version_2` made, as a message of type openapi.v2.Document."""
    return _DOCUMENT(document)
