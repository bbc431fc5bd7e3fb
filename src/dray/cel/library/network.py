"""IP addresses and CIDR prefixes. IPv4-mapped IPv6 addresses and zones are not accepted."""

from __future__ import annotations

import ipaddress
import re
from typing import Any, Final

from dray.cel.declarations import function, member, overload
from dray.cel.types import BOOL, CIDR, INT, IP, STRING
from dray.cel.values import CelError, IPAddress, NetworkPrefix

__all__ = ["CIDRS", "IPS"]

_MAX_TEXT: Final = 64
_PREFIX: Final = re.compile(r"0|[1-9][0-9]{0,2}")


def _ip(text: str) -> IPAddress | CelError:
    try:
        address = ipaddress.ip_address(text if len(text) <= _MAX_TEXT else "")
    except ValueError:
        return CelError(f"{_shown(text)} is not an IP address")
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None or "%" in text:
            return CelError(f"IP address {_shown(text)} with zone value is not allowed")
        if address.ipv4_mapped is not None:
            return CelError(f"IPv4-mapped IPv6 address {_shown(text)} is not allowed")
    return IPAddress(address)


def _cidr(text: str) -> NetworkPrefix | CelError:
    address_text, slash, bits = text.rpartition("/")
    address = _ip(address_text)
    if isinstance(address, CelError) or not slash or not _PREFIX.fullmatch(bits):
        return CelError(f"{_shown(text)} is not a CIDR prefix")
    if int(bits) > address.address.max_prefixlen:
        return CelError(f"{_shown(text)} is not a CIDR prefix: the prefix is too long")
    return NetworkPrefix(address.address, int(bits))


def _shown(text: str) -> str:
    return repr(text if len(text) <= _MAX_TEXT else text[:_MAX_TEXT] + "…")


def _is_ip(text: str) -> bool:
    return isinstance(_ip(text), IPAddress)


def _is_cidr(text: str) -> bool:
    return isinstance(_cidr(text), NetworkPrefix)


def _is_canonical(text: str) -> Any:
    address = _ip(text)
    return address if isinstance(address, CelError) else str(address.address) == text


def _network(prefix: NetworkPrefix) -> int:
    """The leading bits of the prefix, as a number."""
    return int(prefix.address) >> (prefix.address.max_prefixlen - prefix.bits)


def _contains_ip(prefix: NetworkPrefix, other: Any) -> Any:
    address = _ip(other) if other.__class__ is str else other
    if isinstance(address, CelError):
        return address
    return _covers(prefix, address.address)


def _covers(prefix: NetworkPrefix, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    if address.version != prefix.address.version:
        return False
    return int(address) >> (address.max_prefixlen - prefix.bits) == _network(prefix)


def _contains_cidr(prefix: NetworkPrefix, other: Any) -> Any:
    inner = _cidr(other) if other.__class__ is str else other
    if isinstance(inner, CelError):
        return inner
    return prefix.bits <= inner.bits and _covers(prefix, inner.address)


def _masked(prefix: NetworkPrefix) -> NetworkPrefix:
    shift = prefix.address.max_prefixlen - prefix.bits
    return NetworkPrefix(type(prefix.address)(_network(prefix) << shift), prefix.bits)


def _is_link_local_multicast(ip: IPAddress) -> bool:
    if isinstance(ip.address, ipaddress.IPv4Address):
        return int(ip.address) >> 8 == 0xE00000
    return int(ip.address) >> 112 & 0xFF0F == 0xFF02


def _is_global_unicast(ip: IPAddress) -> bool:
    address = ip.address
    return not (
        address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or address.is_link_local
        or (int(address) == 0xFFFFFFFF and address.version == 4)
    )


IPS: Final = (
    function("ip", overload("string_to_ip", (STRING,), IP, _ip)),
    function("family", member("ip_family", (IP,), INT, lambda ip: ip.address.version)),
    function("ip.isCanonical", overload("ip_is_canonical", (STRING,), BOOL, _is_canonical)),
    function("isUnspecified", member("ip_is_unspecified", (IP,), BOOL, lambda ip: ip.address.is_unspecified)),
    function("isLoopback", member("ip_is_loopback", (IP,), BOOL, lambda ip: ip.address.is_loopback)),
    function("isLinkLocalMulticast", member("ip_is_link_local_multicast", (IP,), BOOL, _is_link_local_multicast)),
    function(
        "isLinkLocalUnicast",
        member("ip_is_link_local_unicast", (IP,), BOOL, lambda ip: ip.address.is_link_local),
    ),
    function("isGlobalUnicast", member("ip_is_global_unicast", (IP,), BOOL, _is_global_unicast)),
    function("isIP", overload("is_ip", (STRING,), BOOL, _is_ip)),
    function("string", overload("ip_to_string", (IP,), STRING, lambda ip: str(ip.address))),
)

CIDRS: Final = (
    function("cidr", overload("string_to_cidr", (STRING,), CIDR, _cidr)),
    function(
        "containsIP",
        member("cidr_contains_ip_string", (CIDR, STRING), BOOL, _contains_ip),
        member("cidr_contains_ip_ip", (CIDR, IP), BOOL, _contains_ip),
    ),
    function(
        "containsCIDR",
        member("cidr_contains_cidr_string", (CIDR, STRING), BOOL, _contains_cidr),
        member("cidr_contains_cidr", (CIDR, CIDR), BOOL, _contains_cidr),
    ),
    function("ip", member("cidr_ip", (CIDR,), IP, lambda prefix: IPAddress(prefix.address))),
    function("prefixLength", member("cidr_prefix_length", (CIDR,), INT, lambda prefix: prefix.bits)),
    function("masked", member("cidr_masked", (CIDR,), CIDR, _masked)),
    function("isCIDR", overload("is_cidr", (STRING,), BOOL, _is_cidr)),
    function("string", overload("cidr_to_string", (CIDR,), STRING, str)),
)
