"""Attributes of devices: one value of one type under a qualified name."""

from __future__ import annotations

from msgspec.structs import astuple

from dray.api.field import invalid, too_long
from dray.api.resource import DeviceAttribute, NullableDeviceAttribute
from dray.api.resource.slice import ATTRIBUTE_VALUE_LENGTH
from dray.api.semver import is_semver
from dray.validation.context import Errors
from dray.validation.resource_names import shortened, validate_qualified_name


def validate_attributes(errors: Errors, attributes: dict[str, DeviceAttribute], path: str, declared: str) -> None:
    """The attributes of one device. `declared` is the path of the map as the request's version spells it."""
    for key, attribute in attributes.items():
        validate_qualified_name(errors, key, path)
        if not _is_plain(attribute):
            inner = shortened(key)
            validate_attribute(errors, attribute, f"{path}[{inner}]", f"{declared}[{key}]")


def _is_plain(attribute: DeviceAttribute) -> bool:
    """The cheap answer for nearly all attributes: exactly one scalar, and nothing wrong with it."""
    values = astuple(attribute)
    if values.count(None) != len(values) - 1:
        return False
    if attribute.string is not None:
        return len(attribute.string) <= 16
    if attribute.version is not None:
        return len(attribute.version) <= 16 and is_semver(attribute.version)
    return attribute.int_value is not None or attribute.bool_value is not None


def validate_attribute(
    errors: Errors, attribute: DeviceAttribute | NullableDeviceAttribute, path: str, declared: str
) -> None:
    """Exactly one value is set (4381-31); texts are short (4381-32), versions semantic (4381-33)."""
    given = (
        attribute.int_value is not None,
        attribute.bool_value is not None,
        attribute.string is not None,
        attribute.version is not None,
        bool(attribute.ints),
        bool(attribute.bools),
        bool(attribute.strings),
        bool(attribute.versions),
        isinstance(attribute, NullableDeviceAttribute) and attribute.null is not None,
    )
    if attribute.string is not None:
        _validate_text(errors, attribute.string, f"{path}.string")
    if attribute.version is not None:
        _validate_version(errors, attribute.version, f"{path}.version")
    for index, text in enumerate(attribute.strings or ()):
        _validate_text(errors, text, f"{path}.strings[{index}]")
    for index, text in enumerate(attribute.versions or ()):
        _validate_version(errors, text, f"{path}.versions[{index}]")
    empty = _empty_lists(attribute)
    for field in empty:
        errors.append(invalid(f"{path}.{field}", [], "must not be empty if it is given"))
    if sum(given) != 1 or empty:
        errors.append(invalid(declared, sum(given), "exactly one value must be given"))


def _empty_lists(attribute: DeviceAttribute | NullableDeviceAttribute) -> list[str]:
    lists = (
        ("ints", attribute.ints),
        ("bools", attribute.bools),
        ("strings", attribute.strings),
        ("versions", attribute.versions),
    )
    return [field for field, values in lists if values is not None and not values]


def _validate_text(errors: Errors, text: str, path: str) -> None:
    if len(text.encode()) > ATTRIBUTE_VALUE_LENGTH:
        errors.append(too_long(path, ATTRIBUTE_VALUE_LENGTH))


def _validate_version(errors: Errors, text: str, path: str) -> None:
    if not is_semver(text):
        errors.append(invalid(path, text, "must be a semantic version (semver.org 2.0.0)"))
    _validate_text(errors, text, path)


def count_values(attributes: dict[str, DeviceAttribute]) -> int:
    """How many values the attributes hold, each entry of a list counted."""
    total = len(attributes)
    for attribute in attributes.values():
        if attribute.ints or attribute.bools or attribute.strings or attribute.versions:
            lists = (attribute.ints, attribute.bools, attribute.strings, attribute.versions)
            total += sum(len(values) for values in lists if values) - 1
    return total


def has_list(attributes: dict[str, DeviceAttribute]) -> bool:
    """Whether one of the attributes holds a list."""
    for attribute in attributes.values():
        if attribute.ints or attribute.bools or attribute.strings or attribute.versions:
            return True
    return False
