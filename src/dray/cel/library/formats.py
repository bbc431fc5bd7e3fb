"""Named formats: ``format.dns1123Label().validate(text)`` says what is wrong with a text, if anything is."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from typing import Any, Final

from dray.api import names
from dray.cel import types
from dray.cel.declarations import function, member, overload
from dray.cel.library.optional import NONE
from dray.cel.library.urls import UrlError, parse_url
from dray.cel.types import FORMAT, STRING
from dray.cel.values import NamedFormat, Optional

__all__ = ["FORMATS", "FUNCTIONS"]

_UUID: Final = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})")
_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[^\n][0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def _uri(text: str) -> list[str]:
    try:
        parse_url(text)
    except UrlError as error:
        return [str(error)]
    return []


def _is_date(text: str) -> bool:
    if not _DATE.fullmatch(text):
        return False
    try:
        date.fromisoformat("0004" + text[4:] if text.startswith("0000") else text)
    except ValueError:
        return False
    return True


def _is_datetime(text: str) -> bool:
    day, separator, rest = text.lower().partition("t")
    match = _TIME.fullmatch(rest.partition("t")[0])
    if not separator or not _is_date(day) or match is None:
        return False
    return match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _rule(holds: Callable[[str], Any], message: str) -> Callable[[str], list[str]]:
    return lambda text: [] if holds(text) else [message]


def _name(validate: Callable[[str], tuple[str, ...]]) -> Callable[[str], list[str]]:
    return lambda text: list(validate(text))


def _prefix(validate: Callable[[str], tuple[str, ...]]) -> Callable[[str], list[str]]:
    return lambda text: list(validate(names.mask_trailing_dash(text)))


FORMATS: Final = {
    "dns1123Label": NamedFormat("DNS1123Label", 30, _name(names.validate_dns1123_label)),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", 60, _name(names.validate_dns1123_subdomain)),
    "dns1035Label": NamedFormat("DNS1035Label", 30, _name(names.validate_dns1035_label)),
    "qualifiedName": NamedFormat("QualifiedName", 60, _name(names.validate_label_key)),
    "dns1123LabelPrefix": NamedFormat("DNS1123LabelPrefix", 30, _prefix(names.validate_dns1123_label)),
    "dns1123SubdomainPrefix": NamedFormat("DNS1123SubdomainPrefix", 60, _prefix(names.validate_dns1123_subdomain)),
    "dns1035LabelPrefix": NamedFormat("DNS1035LabelPrefix", 30, _prefix(names.validate_dns1035_label)),
    "labelValue": NamedFormat("LabelValue", 40, _name(names.validate_label_value)),
    "uri": NamedFormat("URI", 1103, _uri),
    "uuid": NamedFormat("uuid", 70, _rule(_UUID.fullmatch, "does not match the UUID format")),
    "byte": NamedFormat("byte", 84, _rule(_BASE64.fullmatch, "invalid base64")),
    "date": NamedFormat("date", 71, _rule(_is_date, "invalid date")),
    "datetime": NamedFormat("datetime", 71, _rule(_is_datetime, "invalid datetime")),
}
"""The formats by the name under which expressions find them."""


def _named(name: str) -> Optional:
    found = FORMATS.get(name)
    return NONE if found is None else Optional(found)


def _validate(rule: NamedFormat, text: str) -> Optional:
    violations = rule.violations(text)
    return Optional(violations) if violations else NONE


def _constant(value: NamedFormat) -> Callable[[], NamedFormat]:
    return lambda: value


FUNCTIONS: Final = (
    function(
        "validate",
        member("format-validate", (FORMAT, STRING), types.optional_of(types.list_of(STRING)), _validate),
    ),
    function("format.named", overload("format-named", (STRING,), types.optional_of(FORMAT), _named)),
    *(
        function(f"format.{name}", overload(f"format.{name}", (), FORMAT, _constant(value), is_lazy=True))
        for name, value in FORMATS.items()
    ),
)
