"""Small checks that many kinds share. Each adds to a list of errors; nothing is raised."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Hashable, Iterable
from typing import Any

import msgspec

from dray.api.field import FieldError, Reason, duplicate, invalid, not_supported, required, shown, too_long, too_many
from dray.validation import names
from dray.validation.context import Errors

IMMUTABLE = "field is immutable"


def name(errors: Errors, path: str, value: str, rule: names.Rule) -> None:
    """`value` must follow a rule of `names`."""
    for problem in rule(value):
        errors.append(invalid(path, value, problem))


def required_name(errors: Errors, path: str, value: str, rule: names.Rule) -> None:
    """`value` must be given and follow a rule of `names`."""
    if value:
        name(errors, path, value, rule)
    else:
        errors.append(required(path))


def immutable(errors: Errors, path: str, new: Any, old: Any) -> None:
    """`new` must equal `old`."""
    if new != old:
        errors.append(invalid(path, new, IMMUTABLE))


def one_of(errors: Errors, path: str, value: str, allowed: tuple[str, ...]) -> None:
    """`value` must be in a closed set."""
    if value not in allowed:
        errors.append(not_supported(path, value, allowed))


def required_one_of(errors: Errors, path: str, value: str, allowed: tuple[str, ...]) -> None:
    """`value` must be given and in a closed set."""
    if value:
        one_of(errors, path, value, allowed)
    else:
        errors.append(required(path))


def not_negative(errors: Errors, path: str, value: int) -> None:
    """`value` must be zero or more."""
    if value < 0:
        errors.append(invalid(path, value, "must be greater than or equal to 0"))


def fits(errors: Errors, path: str, items: Collection[Any], limit: int) -> bool:
    """Whether there are at most `limit` items; where not, they are not looked at one by one."""
    if len(items) <= limit:
        return True
    errors.append(too_many(path, len(items), limit))
    return False


def unique(errors: Errors, path: str, keys: Iterable[Hashable]) -> None:
    """No key may stand twice; the error is at each later one."""
    seen: set[Hashable] = set()
    for index, key in enumerate(keys):
        if key in seen:
            errors.append(duplicate(f"{path}[{index}]", key))
        seen.add(key)


def length(errors: Errors, path: str, value: str, limit: int) -> None:
    """At most `limit` bytes."""
    if len(value) > limit or (not value.isascii() and len(value.encode()) > limit):
        errors.append(too_long(path, limit))


def json_object(errors: Errors, path: str, value: Any, limit: int, *, stored: bool = False) -> None:
    """`value` must be a JSON object of at most `limit` bytes (the size is not asked of what is stored already)."""
    if value is None:
        errors.append(required(path))
    elif not stored and json_size(value) > limit:
        errors.append(too_long(path, limit))
    elif not isinstance(value, dict):
        errors.append(invalid(path, "<value omitted>", "must be a JSON object"))


def json_size(value: Any) -> int:
    """How many bytes a free-form value has as compact JSON."""
    return len(msgspec.json.encode(value))


def not_found(errors: Errors, path: str, value: str, detail: str = "") -> None:
    """`value` refers to something that is not there."""
    text = f"Not found: {shown(value)}" + (f": {detail}" if detail else "")
    errors.append(FieldError(Reason.NOT_FOUND, path, text))


def is_address(text: str) -> bool:
    """Whether a text is an IP address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def address(errors: Errors, path: str, value: str) -> None:
    """`value` must be an IP address."""
    if not is_address(value):
        errors.append(invalid(path, value, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"))


def port(errors: Errors, path: str, value: int) -> None:
    """A port number."""
    if not 1 <= value <= 65535:
        errors.append(invalid(path, value, "must be between 1 and 65535"))
