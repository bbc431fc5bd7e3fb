"""The formats of texts that a schema can ask for. Formats that are not in the table are ignored, as in Kubernetes."""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections.abc import Callable
from typing import Any, Final

from dray.api import names
from dray.cel.library.formats import FORMATS

_EMAIL: Final = re.compile(r"[^@\s<>]+@[^@\s<>]+|[^<>@]*<[^@\s<>]+@[^@\s<>]+>")
_OCTET: Final = "[0-9a-fA-F]{2}"
_MAC: Final = re.compile(
    "|".join(
        f"{_OCTET}(?:{mark}{_OCTET}){{{count - 1}}}"
        if mark in (":", "-", "")
        else f"{_OCTET * 2}(?:{mark}{_OCTET * 2}){{{count // 2 - 1}}}"
        for count in (6, 8, 20)
        for mark in (":", "-", "", r"\.")
    )
)
_SLOPPY_IPV4: Final = re.compile(r"0{0,8}[0-9]{1,3}(?:\.0{0,8}[0-9]{1,3}){3}")
_HEX: Final = "[0-9a-f]"
_DURATION: Final = re.compile(
    r"[-+]?(?:0|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h)"
    r"(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))*)"
)
_COUNTED: Final = re.compile(r"(?<![0-9])[0-9]+\s*([A-Za-zµ]+)")
_UNITS: Final = frozenset(("ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"))
_UNIT_STARTS: Final = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")


def _matches(pattern: str, flags: int = 0) -> Callable[[str], bool]:
    compiled = re.compile(pattern, flags)
    return lambda text: compiled.fullmatch(text) is not None


def _parses(parse: Callable[[str], Any]) -> Callable[[str], bool]:
    def holds(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return holds


def _named(name: str) -> Callable[[str], bool]:
    violations = FORMATS[name].violations
    return lambda text: not violations(text)


def _uuid(version: str) -> Callable[[str], bool]:
    variant = "[89ab]" if version in "45" else _HEX
    return _matches(
        rf"{_HEX}{{8}}-?{_HEX}{{4}}-?{version}{_HEX}{{3}}-?{variant}{_HEX}{{3}}-?{_HEX}{{12}}", re.IGNORECASE
    )


def _duration(text: str) -> bool:
    """As Go writes it; or a text that counts some unit somewhere, such as `2 weeks` or `1h 30m`."""
    if _DURATION.fullmatch(text) is not None:
        return True
    units = (found[1].lower() for found in _COUNTED.finditer(text))
    return any(unit in _UNITS or unit.startswith(_UNIT_STARTS) for unit in units)


def _in_label(letter: str) -> bool:
    return letter.isalpha() or letter in "0123456789" or unicodedata.category(letter).startswith("S")


def _hostname(text: str) -> bool:
    """Labels with a top level of letters; alone, a label has a dash in second place only: so it is in Kubernetes."""
    *labels, last = text.split(".")
    if len(text.encode()) > 255:
        return False
    if not labels:
        rest = last[1:].removeprefix("-")
        return bool(last) and len(rest) <= 62 and all(map(_in_label, last[0] + rest))
    return (
        2 <= len(last) <= 63
        and last.isalpha()
        and all(
            label
            and len(label) <= 63
            and _in_label(label[0])
            and _in_label(label[-1])
            and all(map(_in_label, label.replace("-", "")))
            for label in labels
        )
    )


_is_ipv6 = _parses(ipaddress.IPv6Address)


def _ipv4(text: str) -> bool:
    """Leading zeros are no harm here, nor is that an address is written as one of IPv6."""
    if ":" in text:
        return "." in text and _is_ipv6(text)
    return _SLOPPY_IPV4.fullmatch(text) is not None and all(int(part) < 256 for part in text.split("."))


def _cidr(text: str) -> bool:
    return "/" in text and _parses(lambda given: ipaddress.ip_network(given, strict=False))(text)


TEXT_FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "byte": _named("byte"),
    "cidr": _cidr,
    "date": _named("date"),
    "datetime": _named("datetime"),
    "duration": _duration,
    "email": lambda text: _EMAIL.fullmatch(text) is not None,
    "hexcolor": _matches(r"#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "hostname": _hostname,
    "ipv4": _ipv4,
    "ipv6": lambda text: "%" not in text and _is_ipv6(text),
    "k8slongname": lambda text: not names.validate_dns1123_subdomain(text),
    "k8sshortname": lambda text: not names.validate_dns1123_label(text),
    "mac": lambda text: _MAC.fullmatch(text) is not None,
    "ssn": _matches(r"[0-9]{3}[- ][0-9]{2}[- ][0-9]{4}"),
    "uri": _named("uri"),
    "uuid": _named("uuid"),
    "uuid3": _uuid("3"),
    "uuid4": _uuid("4"),
    "uuid5": _uuid("5"),
}
"""By name without dashes."""


def text_format(name: str) -> Callable[[str], bool] | None:
    """The test for a format; None for one that is not known, which holds for every text."""
    return TEXT_FORMATS.get(name.replace("-", ""))
