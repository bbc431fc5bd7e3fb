"""The head of a request: what its headers count, and what its path and query say."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl, unquote

from dray.api.text_memory import remember_texts
from dray.process.http.messages import Peer, Request

HEADER_BYTES: Final = 32
"""What a header counts besides its letters: each of them has a cost, also one without any."""
MOST_PARAMETERS: Final = 1_000
_VERSIONS: Final = frozenset({"1.0", "1.1"})


class HeadError(Exception):
    """A head that is not read; the message says why, and `code` what its sender is answered."""

    def __init__(self, message: str, code: int = 400) -> None:
        super().__init__(message)
        self.code = code


@remember_texts(256, longest=64)
def header_key(name: bytes) -> str:
    """A header's name in lower case."""
    return name.lower().decode("latin-1")


def body_length(headers: dict[str, str], version: str) -> int | None:
    """Bytes of the body that is announced; None if it comes in chunks, which say themselves where it ends.

    Raises HeadError for what another server, before this one or behind it, may read another way: it would see other
    requests on the connection than are seen here.
    """
    if version not in _VERSIONS:
        raise HeadError(f"HTTP/{version} is not spoken here", 505)
    if "," in headers.get("host", ""):
        raise HeadError("there is more than one Host header")
    encoding = headers.get("transfer-encoding")
    if encoding is None:
        return int(headers.get("content-length") or 0)
    if version == "1.0":
        raise HeadError("Transfer-Encoding is not part of HTTP/1.0")
    if encoding.lower() != "chunked":
        raise HeadError("the only Transfer-Encoding is chunked", 501)
    return None


def request_of(method: str, uri: str, headers: dict[str, str], peer: Peer) -> Request:
    """A request without its body. Raises HeadError."""
    path, query = _path_and_query(uri) if "?" in uri or "%" in uri else (uri, {})
    return Request(method, path, query, headers, b"", peer, uri)


def _path_and_query(uri: str) -> tuple[str, dict[str, str]]:
    """What is asked for. Of a parameter that is given twice, the first counts. Raises HeadError."""
    path, _, raw_query = uri.partition("?")
    if "%" in path:
        path = unquote(path, errors="replace")
    if not raw_query:
        return path, {}
    if raw_query.count("&") >= MOST_PARAMETERS:
        raise HeadError(f"a query has at most {MOST_PARAMETERS} parameters")
    return path, dict(reversed(parse_qsl(raw_query, keep_blank_values=True)))
