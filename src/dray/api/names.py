"""Name rules of the Kubernetes API: DNS names, label keys and values, C identifiers, path segments.

Every ``validate_`` function returns the reasons why a name is bad, in words for people, and nothing for a
good name. Names are ASCII; lengths count bytes, as upstream counts them. Pure functions: no I/O.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

Messages: TypeAlias = tuple[str, ...]

DNS_LABEL_MAX_LENGTH: Final = 63
DNS_SUBDOMAIN_MAX_LENGTH: Final = 253
LABEL_NAME_MAX_LENGTH: Final = 63
LABEL_VALUE_MAX_LENGTH: Final = 63
DRIVER_NAME_MAX_LENGTH: Final = 63

# Runs of letters and digits joined by runs of the inner characters. Possessive, so the time is linear.
_LABEL: Final = r"[a-z0-9]++(?:-++[a-z0-9]++)*+"
_DNS_LABEL: Final = re.compile(_LABEL)
_DNS_SUBDOMAIN: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*+")
_DNS_SUBDOMAIN_CASELESS: Final = re.compile(_DNS_SUBDOMAIN.pattern, re.ASCII | re.IGNORECASE)
_DNS1035_LABEL: Final = re.compile(rf"(?=[a-z]){_LABEL}")
_LABEL_NAME: Final = re.compile(r"[A-Za-z0-9]++(?:[-_.]++[A-Za-z0-9]++)*+")
_C_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*+")

_BAD_DNS_LABEL: Final = (
    "must be a DNS label (RFC 1123): lower-case letters, digits and '-', "
    "with a letter or digit at both ends, such as 'my-name'"
)
_BAD_DNS_SUBDOMAIN: Final = (
    "must be a DNS subdomain (RFC 1123): lower-case letters, digits, '-' and '.', "
    "with a letter or digit at both ends of each part, such as 'example.com'"
)
_BAD_DNS_SUBDOMAIN_CASELESS: Final = (
    "must be a DNS subdomain (RFC 1123): letters, digits, '-' and '.', "
    "with a letter or digit at both ends of each part, such as 'gpu.example.com'"
)
_BAD_DNS1035_LABEL: Final = (
    "must be a DNS label (RFC 1035): lower-case letters, digits and '-', "
    "with a letter first and a letter or digit last, such as 'my-name'"
)
_BAD_LABEL_NAME: Final = (
    "must consist of letters, digits, '-', '_' and '.', with a letter or digit at both ends, such as 'my.name'"
)
_BAD_LABEL_KEY: Final = (
    "must be a name, optionally after a DNS subdomain and one '/', such as 'my.name' or 'example.com/my.name'"
)
_BAD_LABEL_VALUE: Final = (
    "must be empty or consist of letters, digits, '-', '_' and '.', "
    "with a letter or digit at both ends, such as 'my_value'"
)
_BAD_C_IDENTIFIER: Final = (
    "must be a C identifier: letters, digits and '_', not starting with a digit, such as 'my_name'"
)


def validate_dns1123_label(value: str) -> Messages:
    """A DNS label: at most 63 characters, no dots. Device names are such labels (4381-20)."""
    if _DNS_LABEL.fullmatch(value):
        return _check_length(value, DNS_LABEL_MAX_LENGTH)
    # A good subdomain that is no label has dots; saying so helps more than the whole rule.
    shape = "must not contain dots" if _DNS_SUBDOMAIN.fullmatch(value) else _BAD_DNS_LABEL
    return (*_check_length(value, DNS_LABEL_MAX_LENGTH), shape)


def validate_dns1123_subdomain(value: str) -> Messages:
    """A DNS subdomain: labels joined by dots, at most 253 characters in all."""
    if len(value) <= DNS_SUBDOMAIN_MAX_LENGTH and _DNS_SUBDOMAIN.fullmatch(value):
        return ()
    return _check(value, _DNS_SUBDOMAIN, DNS_SUBDOMAIN_MAX_LENGTH, _BAD_DNS_SUBDOMAIN)


def validate_dns1035_label(value: str) -> Messages:
    """A DNS label that starts with a letter."""
    return _check(value, _DNS1035_LABEL, DNS_LABEL_MAX_LENGTH, _BAD_DNS1035_LABEL)


def validate_label_key(value: str) -> Messages:
    """A label key, also called a qualified name: ``name`` or ``dns.subdomain/name`` (5055-11)."""
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        return (_BAD_LABEL_KEY,)
    messages: Messages = ()
    if slash and not prefix:
        messages = ("the prefix must not be empty",)
    elif slash:
        messages = _say_where("the prefix", validate_dns1123_subdomain(prefix))
    if not name:
        messages += ("the name must not be empty",)
    shape = _check(name, _LABEL_NAME, LABEL_NAME_MAX_LENGTH, _BAD_LABEL_NAME)
    return messages + _say_where("the name", shape)


def validate_label_value(value: str) -> Messages:
    """A label value: empty, or at most 63 characters with a letter or digit at both ends (5055-12)."""
    return _check(value, _LABEL_NAME, LABEL_VALUE_MAX_LENGTH, _BAD_LABEL_VALUE) if value else ()


def validate_c_identifier(value: str) -> Messages:
    """A C identifier of any length."""
    return () if _C_IDENTIFIER.fullmatch(value) else (_BAD_C_IDENTIFIER,)


def validate_path_segment_name(value: str) -> Messages:
    """A name that can stand as one segment of a URL path: not ``.`` or ``..``, without ``/`` and ``%``."""
    if value in (".", ".."):
        return (f"must not be '{value}'",)
    return validate_path_segment_prefix(value)


def validate_path_segment_prefix(value: str) -> Messages:
    """The beginning of a path segment name, to which more characters will be added."""
    return tuple(f"must not contain '{character}'" for character in "/%" if character in value)


def validate_driver_name(value: str) -> Messages:
    """A DRA driver name: a DNS subdomain in any case, at most 63 characters."""
    return _check(value, _DNS_SUBDOMAIN_CASELESS, DRIVER_NAME_MAX_LENGTH, _BAD_DNS_SUBDOMAIN_CASELESS)


def mask_trailing_dash(value: str) -> str:
    """A ``generateName`` as it is to be validated: a dash at its end will not be at the end of the name."""
    return value[:-2] + "a" if len(value) > 1 and value.endswith("-") else value


def _check(value: str, shape: re.Pattern[str], max_length: int, bad_shape: str) -> Messages:
    messages = _check_length(value, max_length)
    return messages if shape.fullmatch(value) else (*messages, bad_shape)


def _say_where(part: str, messages: Messages) -> Messages:
    return tuple(f"{part} {message}" for message in messages) if messages else ()


def _check_length(value: str, max_length: int) -> Messages:
    length = len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
    return (f"must be at most {max_length} characters long",) if length > max_length else ()


def qualified(name: str, driver: str) -> str:
    """The name of an attribute or capacity with its domain, which is the driver's if it has none."""
    return name if "/" in name else f"{driver}/{name}"
