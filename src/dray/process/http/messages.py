"""What travels between connections and the application: requests, answers, and what a client may take."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NamedTuple

import msgspec

from dray.process.http.duplex import Duplex

MAX_HEADER_BYTES = 64 * 1024
MAX_BODY_BYTES = 3 * 1024 * 1024
SMALL_BODY = 64 * 1024
"""A body of this size is let through and dropped if its request is refused, so that the connection can go on."""

JSON = "application/json"
YAML = "application/yaml"

_REASONS = {
    101: "Switching Protocols",
    200: "OK",
    201: "Created",
    202: "Accepted",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    406: "Not Acceptable",
    408: "Request Timeout",
    409: "Conflict",
    410: "Gone",
    413: "Request Entity Too Large",
    415: "Unsupported Media Type",
    422: "Unprocessable Entity",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
    505: "HTTP Version Not Supported",
    507: "Insufficient Storage",
}


class Limits(msgspec.Struct, frozen=True):
    """How long and how much a client may take, in seconds, pieces and bytes."""

    header_seconds: float = 15.0
    body_seconds: float = 60.0
    idle_seconds: float = 120.0
    stalled_stream_seconds: float = 15.0
    connections: int = 20_000
    all_bodies: int = 256 * 1024 * 1024
    """Bytes of bodies that are held at a time, of all clients together."""
    bodies_of_one: int = 64 * 1024 * 1024
    """The same of one caller."""


class Listener(msgspec.Struct, frozen=True):
    """Where to listen: on a free port if it is 0, in plain HTTP without `tls`."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None


class Peer(msgspec.Struct, frozen=True):
    """Who is at the other end of a connection: address, and the certificate if the client showed one that is valid."""

    address: str
    certificate: dict[str, Any] | None = None


class Request(msgspec.Struct):
    """One request. `uri` is path and query as they were sent; the body of an oversized one is dropped."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    peer: Peer
    uri: str = ""
    oversized: bool = False
    admitted: Any = None
    """What the application has learned from the head, before there was a body."""
    owner: str = ""
    """Whose account the request and its body are on; the application says so when it admits the head."""
    sent: Callable[[], None] | None = None
    """Called when the answer is sent, or nobody waits for it any more; the application says whom to call."""

    def header(self, name: str) -> str:
        """A header's value, empty if absent; `name` in lower case."""
        return self.headers.get(name, "")

    def end(self) -> None:
        """The answer is sent, or nobody waits for it any more."""
        if self.sent is not None:
            self.sent()
            self.sent = None


class Response(msgspec.Struct):
    """One answer, written whole."""

    code: int
    body: bytes = b""
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()


class LongResponse(Response):
    """An answer that is written in parts, as they are made; it has no other body."""

    parts: AsyncIterator[bytes] | None = None


class Queued(NamedTuple):
    """A request that waits for its answer; `refusal` if the answer is known, `last` if nothing more is read.

    `ends` if the client expects the connection to end with the answer: it says so, or speaks HTTP/1.0, `old`.
    """

    request: Request
    refusal: Response | None
    last: bool
    ends: bool = False
    old: bool = False


class Stream(msgspec.Struct):
    """An answer that goes on until its chunks end, as watches do; `ended` is called then, for whatever reason."""

    chunks: AsyncIterator[bytes]
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    ended: Callable[[], None] = lambda: None
    code: int = 200


class Upgrade(msgspec.Struct):
    """An answer after which the connection speaks another protocol: `converse` does, until it returns.

    Only for a request that asks for it. `ended` is called at the end, for whatever reason.
    """

    protocol: str
    converse: Callable[[Duplex], Awaitable[None]]
    headers: tuple[tuple[str, str], ...] = ()
    ended: Callable[[], None] = lambda: None
    code: int = 101


Answer = Response | Stream | Upgrade


def head_bytes(code: int, content_type: str, headers: tuple[tuple[str, str], ...], framing: str, close: bool) -> bytes:
    """The status line and headers of an answer; `framing` is the header that says where the body ends."""
    lines = [f"HTTP/1.1 {code} {_REASONS.get(code, 'Unknown')}", f"Content-Type: {content_type}", framing]
    if headers:
        lines.extend(f"{name}: {value}" for name, value in headers)
    if close:
        lines.append("Connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "replace")  # warnings quote names that may be anything


def upgrade_bytes(answer: Upgrade) -> bytes:
    """The status line and headers after which a connection speaks another protocol."""
    lines = ["HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", f"Upgrade: {answer.protocol}"]
    lines.extend(f"{name}: {value}" for name, value in answer.headers)
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


def failure(code: int, message: str) -> Response:
    """A refusal of the protocol itself, in the form of the API's failures."""
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    headers = (("Retry-After", "1"),) if code == 429 else ()
    return Response(code, msgspec.json.encode({**status, "code": code}), headers=headers)
