"""The formats of texts that a schema can ask for. Formats that are not in the table are ignored, as in Kubernetes."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Any, Final

from dray.api import names
from dray.cel.library.formats import FORMATS

_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+")
_HOSTNAME: Final = re.compile(r"(?=.{1,255}$)[a-zA-Z0-9_](?:[-a-zA-Z0-9_.]*[a-zA-Z0-9_])?")
_MAC: Final = re.compile(r"[0-9a-fA-F]{2}(?:[:-][0-9a-fA-F]{2}){5}(?:(?:[:-][0-9a-fA-F]{2}){2})?")
_HEX: Final = "[0-9a-f]"
_DURATION: Final = re.compile(
    r"[-+]?(?:0|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h)"
    r"(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))*)"
    r"|[0-9]+ *(?:ns|nano|nanos?econds?|us|µs|micros?|ms|millis?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?"
    r"|d|days?|w|weeks?)"
)


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


def _cidr(text: str) -> bool:
    return "/" in text and _parses(lambda given: ipaddress.ip_network(given, strict=False))(text)


TEXT_FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "byte": _named("byte"),
    "cidr": _cidr,
    "date": _named("date"),
    "datetime": _named("datetime"),
    "duration": lambda text: _DURATION.fullmatch(text) is not None,
    "email": lambda text: _EMAIL.fullmatch(text) is not None,
    "hexcolor": _matches(r"#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "hostname": lambda text: _HOSTNAME.fullmatch(text) is not None,
    "ipv4": _parses(ipaddress.IPv4Address),
    "ipv6": _parses(ipaddress.IPv6Address),
    "k8slongname": lambda text: not names.validate_dns1123_subdomain(text),
    "k8sshortname": lambda text: not names.validate_dns1123_label(text),
    "mac": lambda text: _MAC.fullmatch(text) is not None,
    "ssn": _matches(r"[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}"),
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
