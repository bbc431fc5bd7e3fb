"""Field errors: what is wrong with an object, where, in the shape of a Kubernetes Status cause."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

_LONGEST_KEY = 320
"""A little more than the longest key that is good anywhere: a domain, a slash and a name."""
MOST_CHOICES = 100
"""Of a closed set, how many are told: one in a schema may have 100,000, and a hundred values may be outside it."""


class Reason(StrEnum):
    """The reasons that Kubernetes puts into `details.causes[].reason`."""

    INVALID = "FieldValueInvalid"
    REQUIRED = "FieldValueRequired"
    DUPLICATE = "FieldValueDuplicate"
    NOT_SUPPORTED = "FieldValueNotSupported"
    FORBIDDEN = "FieldValueForbidden"
    TOO_LONG = "FieldValueTooLong"
    TOO_MANY = "FieldValueTooMany"
    TYPE_INVALID = "FieldValueTypeInvalid"
    NOT_FOUND = "FieldValueNotFound"
    INTERNAL = "InternalError"


class FieldError(msgspec.Struct, frozen=True):
    """One problem with one field. `reason` is one of `Reason`, `field` a path such as `spec.devices[0].name`."""

    reason: str
    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def shown(value: Any) -> str:
    """A value as error messages show it: JSON, shortened."""
    text = msgspec.json.encode(value, enc_hook=str).decode()
    return text if len(text) <= 300 else text[:300] + "…"


def key_path(path: str, key: str) -> str:
    """The path of a map's entry. A key may be megabytes long, and stand in the path of everything below it."""
    return f"{path}[{key}]" if len(key) <= _LONGEST_KEY else f"{path}[{key[:_LONGEST_KEY]}…]"


def invalid(path: str, value: Any, detail: str) -> FieldError:
    """The value is of the right type but breaks a rule."""
    return FieldError(Reason.INVALID, path, f"Invalid value: {shown(value)}: {detail}")


def required(path: str, detail: str = "") -> FieldError:
    """A value must be given."""
    return FieldError(Reason.REQUIRED, path, "Required value" + (f": {detail}" if detail else ""))


def duplicate(path: str, value: Any) -> FieldError:
    """A value that must be unique in its list stands there twice."""
    return FieldError(Reason.DUPLICATE, path, f"Duplicate value: {shown(value)}")


def not_supported(path: str, value: Any, allowed: tuple[str, ...]) -> FieldError:
    """A value outside a closed set; the message lists the set, or the first of a large one."""
    choices = [shown(choice) for choice in allowed[:MOST_CHOICES]]
    if len(allowed) > MOST_CHOICES:
        choices.append(f"and {len(allowed) - MOST_CHOICES} more")
    told = f"Unsupported value: {shown(value)}: supported values: {', '.join(choices)}"
    return FieldError(Reason.NOT_SUPPORTED, path, told)


def forbidden(path: str, detail: str) -> FieldError:
    """The field may not be set, or not changed, here."""
    return FieldError(Reason.FORBIDDEN, path, f"Forbidden: {detail}")


def too_long(path: str, limit: int) -> FieldError:
    """A string longer than `limit` bytes."""
    return FieldError(Reason.TOO_LONG, path, f"Too long: may not be more than {limit} bytes")


def too_many(path: str, actual: int, limit: int) -> FieldError:
    """A list or map with more than `limit` entries."""
    return FieldError(Reason.TOO_MANY, path, f"Too many: {actual}: must have at most {limit} items")
