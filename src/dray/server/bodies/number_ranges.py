"""Numbers that are too large for their field.

Python's integers have no end, those of other clients have: one replica count beyond 32 bits in the store, and every
client in Go fails to read the whole list. Few bodies have a number of that many digits, so only those are looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dray.api import codec, schema
from dray.api.field import key_path
from dray.api.schema import Definition, Property
from dray.server import errors
from dray.server.routes import Route

SMALLEST, LARGEST = -(2**31), 2**31 - 1
_DIGITS_ALIKE = bytes.maketrans(b"123456789", b"0" * 9)
_MANY_DIGITS = b"0" * len(str(LARGEST))


def may_be_in(body: bytes) -> bool:
    """Whether a body has so many digits in a row at all: every body is asked, so this must take next to no time."""
    return _MANY_DIGITS in body.translate(_DIGITS_ALIKE)


def may_be_among(value: Any) -> bool:
    """The same of plain values."""
    if isinstance(value, dict):
        return any(map(may_be_among, value.values()))
    if isinstance(value, list):
        return any(map(may_be_among, value))
    return isinstance(value, int) and not SMALLEST <= value <= LARGEST


def check_json(body: bytes, route: Route) -> None:
    """Looks for numbers that do not fit in a JSON body that is known to be well-formed. Raises ApiError."""
    if may_be_in(body):
        check(codec.parse_json(body), route)


def check(value: Any, route: Route) -> None:
    """Looks for numbers that do not fit in a plain value of the kind that the path names. Raises ApiError."""
    if route.kind.is_custom:
        return  # its definition says which numbers it takes
    kind = route.kind.kind
    definition = schema.for_kind(route.kind.group, route.version, kind)
    for path, number in _too_large(value, definition.properties, ""):
        message = f'{kind} in version "{route.version}" cannot be handled as a {kind}: '
        raise errors.bad_request(f"{message}{path}: the number {number} does not fit into 32 bits")


def _too_large(value: Any, properties: dict[str, Property], path: str) -> Iterator[tuple[str, int]]:
    if not isinstance(value, dict):
        return
    for name, item in value.items():
        found = properties.get(name)
        if found is not None:
            yield from _in_property(item, found, f"{path}.{name}" if path else name)


def _in_property(value: Any, known: Property, path: str) -> Iterator[tuple[str, int]]:
    if isinstance(value, int) and known.format == "int32" and not SMALLEST <= value <= LARGEST:
        yield path, value
    elif isinstance(value, list) and known.items is not None:
        for index, item in enumerate(value):
            yield from _in_property(item, known.items, f"{path}[{index}]")
    elif isinstance(value, dict) and known.values is not None:
        for name, item in value.items():
            yield from _in_property(item, known.values, key_path(path, name))
    elif isinstance(value, dict) and known.ref:
        yield from _too_large(value, _properties(known.ref), path)


def _properties(name: str) -> dict[str, Property]:
    found: Definition = schema.definition(name)
    return found.properties
