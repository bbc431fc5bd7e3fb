"""URLs: which texts are one, and their parts.

A URL here is what may stand in the request line of HTTP: absolute, or a path that starts with a slash.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Any, Final

from dray.cel import types
from dray.cel.declarations import function, member, overload
from dray.cel.types import BOOL, STRING, URL
from dray.cel.values import CelError, LiteralMap, Url

__all__ = ["FUNCTIONS", "UrlError", "parse_url"]

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_USER_INFO: Final = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_HOST_ESCAPES: Final = re.compile(r"%(?!25|[89A-Fa-f][0-9A-Fa-f])")
_HOST_CHARACTERS: Final = re.compile(r"[A-Za-z0-9\-_.~!$&'()*+,;=:\[\]<>\"%\u0080-\U0010ffff]*")
_PORT: Final = re.compile(r"(?::[0-9]*)?")
_PATH_UNRESERVED: Final = re.compile(r"[A-Za-z0-9\-_.~$&+,/:;=@]")
_PATH_VALID: Final = re.compile(r"[A-Za-z0-9\-_.~$&+,/:;=@!'()*\[\]%]*")


class UrlError(ValueError):
    """A text is not a URL."""


def parse_url(text: str) -> Url:
    """The parts of a URL; raises UrlError."""
    if not text:
        raise UrlError("the URL is empty")
    if _CONTROL.search(text):
        raise UrlError("the URL contains a control character")
    if text == "*":
        return Url(scheme="", host="", escaped_path="*", query="", text="*")
    scheme, rest = _split_scheme(text)
    rest, fragment_mark, fragment = rest.partition("#")
    if _BAD_ESCAPE.search(fragment):
        raise UrlError("invalid URL escape in the fragment")
    rest, query_mark, query = rest.partition("?")
    if not rest.startswith("/"):
        if not scheme:
            raise UrlError("the URL is neither absolute nor a path that starts with '/'")
        tail = f"{query_mark}{query}{fragment_mark}{fragment}"
        return Url(scheme=scheme, host="", escaped_path="", query=query, text=f"{scheme}:{rest}{tail}")
    user_info, host, path = "", "", rest
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        path = slash + path
        user_info, host = _split_authority(authority)
    escaped = _escape_path(path)
    prefix = f"{scheme}:" if scheme else ""
    has_authority = rest.startswith("//") and (host or user_info or scheme)
    shown = f"//{user_info}{host}" if has_authority else ""
    tail = f"{query_mark}{query}{fragment_mark if fragment else ''}{fragment}"
    return Url(scheme=scheme, host=host, escaped_path=escaped, query=query, text=f"{prefix}{shown}{escaped}{tail}")


def _split_scheme(text: str) -> tuple[str, str]:
    if text.startswith(":"):
        raise UrlError("the URL lacks a scheme before ':'")
    match = _SCHEME.match(text)
    if match is None:
        return "", text
    return match[1].lower(), text[match.end() :]


def _split_authority(authority: str) -> tuple[str, str]:
    """User information including the ``@``, and the host with its port."""
    user_info, at, host = authority.rpartition("@")
    if at and (not _USER_INFO.fullmatch(user_info) or _BAD_ESCAPE.search(user_info)):
        raise UrlError("invalid user information in the URL")
    return user_info + at, _checked_host(host)


def _checked_host(host: str) -> str:
    if host.startswith("["):
        literal, bracket, port = host.rpartition("]")
        if not bracket or not _PORT.fullmatch(port):
            raise UrlError("invalid IPv6 host in the URL")
        address, _, zone = literal[1:].partition("%25")
        try:
            ipaddress.IPv6Address(address)
        except ValueError:
            raise UrlError("invalid IPv6 host in the URL") from None
        return f"[{address}{'%' + _unescape(zone) if zone else ''}]{port}"
    name, colon, port = host.rpartition(":")
    if colon and (":" in name or not _PORT.fullmatch(colon + port)):
        raise UrlError(f"invalid port {colon + port!r} in the URL")
    if _BAD_ESCAPE.search(host) or _HOST_ESCAPES.search(host) or not _HOST_CHARACTERS.fullmatch(host):
        raise UrlError("invalid character in the host of the URL")
    return _unescape(host)


def _unescape(text: str) -> str:
    if "%" not in text:
        return text
    data = re.sub(rb"%([0-9A-Fa-f]{2})", lambda match: bytes([int(match[1], 16)]), text.encode())
    return data.decode("utf-8", "replace")


def _escape_path(path: str) -> str:
    """The path as it was written if that is a valid form of it, else in the default form."""
    if _BAD_ESCAPE.search(path):
        raise UrlError("invalid URL escape in the path")
    if _PATH_VALID.fullmatch(path):
        return path
    return "".join(
        char if _PATH_UNRESERVED.match(char) else "".join(f"%{byte:02X}" for byte in char.encode())
        for char in _unescape(path)
    )


def _url(text: str) -> Any:
    try:
        return parse_url(text)
    except UrlError as error:
        return CelError(f"URL parse error: {error}")


def _is_url(text: str) -> bool:
    return isinstance(_url(text), Url)


def _hostname(url: Url) -> str:
    host = url.host
    if host.startswith("["):
        return host[1 : host.rindex("]")]
    return host.rpartition(":")[0] if ":" in host else host


def _port(url: Url) -> str:
    tail = url.host.rpartition("]")[2]
    port = tail.rpartition(":")[2] if ":" in tail else ""
    return port if port.isdecimal() else ""


def _query(url: Url) -> LiteralMap:
    """The parameters of the query; pairs with a semicolon or a bad escape are left out."""
    values: dict[str, list[str]] = {}
    for pair in url.query.split("&"):
        if not pair or ";" in pair or _BAD_ESCAPE.search(pair):
            continue
        key, _, value = pair.partition("=")
        values.setdefault(_unescape(key.replace("+", " ")), []).append(_unescape(value.replace("+", " ")))
    return LiteralMap(list(values.items()))


_QUERY: Final = types.map_of(STRING, types.list_of(STRING))

FUNCTIONS: Final = (
    function("url", overload("string_to_url", (STRING,), URL, _url)),
    function("isURL", overload("is_url_string", (STRING,), BOOL, _is_url)),
    function("getScheme", member("url_get_scheme", (URL,), STRING, lambda url: url.scheme)),
    function("getHost", member("url_get_host", (URL,), STRING, lambda url: url.host)),
    function("getHostname", member("url_get_hostname", (URL,), STRING, _hostname)),
    function("getPort", member("url_get_port", (URL,), STRING, _port)),
    function("getEscapedPath", member("url_get_escaped_path", (URL,), STRING, lambda url: url.escaped_path)),
    function("getQuery", member("url_get_query", (URL,), _QUERY, _query)),
)
