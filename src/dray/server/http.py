"""HTTP/1.1 on asyncio: bytes in, `Request` out; `Response` or `Stream` in, bytes out.

Our own small protocol over httptools, because it is the fastest at hand, shows the client's certificate to the
application, and never buffers for a reader that does not read. What a client may cost is bounded: header and body size,
time to send them, connections, and the time that a stalled reader of a stream is waited for.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, unquote

import httptools
import msgspec

MAX_HEADER_BYTES = 64 * 1024
MAX_BODY_BYTES = 3 * 1024 * 1024
MAX_PIPELINED = 16
LINGER_SECONDS = 2.0

JSON = "application/json"

log = logging.getLogger(__name__)

_REASONS = {
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
    503: "Service Unavailable",
    504: "Gateway Timeout",
}


class Limits(msgspec.Struct, frozen=True):
    """How long and how much a client may take, in seconds and pieces."""

    header_seconds: float = 15.0
    body_seconds: float = 60.0
    idle_seconds: float = 120.0
    stalled_stream_seconds: float = 15.0
    connections: int = 20_000


class Peer(msgspec.Struct, frozen=True):
    """Who is at the other end of a connection: address, and the certificate if the client showed one that is valid."""

    address: str
    certificate: dict[str, Any] | None = None


class Request(msgspec.Struct):
    """One request, read whole. `uri` is path and query as they were sent; the body of an oversized one is dropped."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    peer: Peer
    uri: str = ""
    oversized: bool = False
    document: Any = None
    """The body already read, from a caller in this process."""

    def header(self, name: str) -> str:
        """A header's value, empty if absent; `name` in lower case."""
        return self.headers.get(name, "")


class Response(msgspec.Struct):
    """One answer, written whole."""

    code: int
    body: bytes = b""
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()


class Stream(msgspec.Struct):
    """An answer that goes on until its chunks end, as watches do; `ended` is called then, for whatever reason."""

    chunks: AsyncIterator[bytes]
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    ended: Callable[[], None] = lambda: None


Answer = Response | Stream
Application = Callable[[Request], Awaitable[Answer]]


@lru_cache(maxsize=256)
def _header_key(name: bytes) -> str:
    return name.lower().decode("latin-1")


def _head(code: int, content_type: str, headers: tuple[tuple[str, str], ...], framing: str, close: bool) -> bytes:
    lines = [f"HTTP/1.1 {code} {_REASONS.get(code, 'Unknown')}", f"Content-Type: {content_type}", framing]
    if headers:
        lines.extend(f"{name}: {value}" for name, value in headers)
    if close:
        lines.append("Connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "replace")  # warnings quote names that may be anything


class _Connection(asyncio.Protocol):
    """One client. Requests of a connection are answered one after the other."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._loop = server.loop
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._peer = Peer("")
        self._queue: deque[Request] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._closing = False
        self._deaf = False
        self._encrypted = False
        self._streaming = False
        self.deadline: float | None = self._loop.time() + server.limits.header_seconds
        self._reset()

    def _reset(self) -> None:
        self._url = b""
        self._headers: dict[str, str] = {}
        self._header_bytes = 0
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._refused: int | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the loop, after the TLS handshake where there is one."""
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write")
        self._transport = transport  # type: ignore[assignment]
        address = transport.get_extra_info("peername")
        certificate = transport.get_extra_info("peercert") or None
        self._encrypted = transport.get_extra_info("ssl_object") is not None
        self._peer = Peer(str(address[0]) if address else "", certificate)
        if not self._server.admit(self):
            self._refuse_connection()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Called by the loop when the other end is gone."""
        self._closing = True
        self._server.forget(self)
        self._writable.set()
        if self._worker is not None:
            self._worker.cancel()

    def data_received(self, data: bytes) -> None:
        """Called by the loop."""
        if self._closing or self._deaf:
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._deaf = True  # nobody has to upgrade: the request is answered as it is, and is the last one
        except httptools.HttpParserError:
            self._write_error(400, "malformed HTTP request")

    def eof_received(self) -> bool:
        """A half-closed connection still gets its answers, unless it is a TLS one: those cannot be half closed."""
        self._closing = self._closing or self._encrypted or (self._worker is None and not self._queue)
        return not self._closing

    def pause_writing(self) -> None:
        """Called by the loop when the client reads too slowly."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Called by the loop when the client has caught up."""
        self._writable.set()

    def on_message_begin(self) -> None:
        """Called by the parser at the start of a request."""
        self._reset()
        self.deadline = self._loop.time() + self._server.limits.header_seconds

    def on_url(self, url: bytes) -> None:
        """Called by the parser, perhaps in pieces."""
        self._url += url
        self._count_header(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by the parser for each header."""
        self._count_header(len(name) + len(value))
        key = _header_key(name)
        text = value.decode("latin-1")
        self._headers[key] = f"{self._headers[key]},{text}" if key in self._headers else text

    def _count_header(self, size: int) -> None:
        self._header_bytes += size
        if self._header_bytes > MAX_HEADER_BYTES:
            self._write_error(431, f"request headers larger than {MAX_HEADER_BYTES} bytes")

    def on_headers_complete(self) -> None:
        """Called by the parser before the body."""
        if self._closing:
            return
        self.deadline = self._loop.time() + self._server.limits.body_seconds
        if self._headers.get("expect", "").lower() == "100-continue":
            self._write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, data: bytes) -> None:
        """Called by the parser, in pieces. What is too large is counted, not kept."""
        self._body_bytes += len(data)
        if self._body_bytes <= MAX_BODY_BYTES:
            self._body.append(data)
        elif self._body_bytes > 16 * MAX_BODY_BYTES:
            self._write_error(413, f"Request entity too large: limit is {MAX_BODY_BYTES}")

    def on_message_complete(self) -> None:
        """Called by the parser at the end of a request."""
        self.deadline = None if self._closing else self._loop.time() + self._server.limits.idle_seconds
        if self._closing:
            return
        if self._body_bytes > MAX_BODY_BYTES:
            self._body.clear()
        if len(self._queue) >= MAX_PIPELINED:
            self._write_error(429, "too many pipelined requests")
            return
        self._queue.append(self._request())
        if self._worker is None:
            self._worker = self._loop.create_task(self._answer_all())

    def _request(self) -> Request:
        uri = self._url.decode("latin-1")
        path, _, raw_query = uri.partition("?")
        if "%" in path:
            path = unquote(path, errors="replace")
        # Of a parameter that is given twice, the first counts.
        query = dict(reversed(parse_qsl(raw_query, keep_blank_values=True))) if raw_query else {}
        method = self._parser.get_method().decode("latin-1")
        oversized = self._body_bytes > MAX_BODY_BYTES
        return Request(method, path, query, self._headers, b"".join(self._body), self._peer, uri, oversized)

    async def _answer_all(self) -> None:
        try:
            while self._queue and not self._closing:
                request = self._queue.popleft()
                self.deadline = None
                close = request.header("connection").lower() == "close" or self._deaf or self._server.stopping
                answer = await self._server.application(request)
                if isinstance(answer, Stream):
                    await self._send_stream(answer)
                    return
                self._send(answer, close, request.method == "HEAD")
                if close:
                    self.close()
                    return
                self.deadline = self._loop.time() + self._server.limits.idle_seconds
        finally:
            self._worker = None

    def _send(self, response: Response, close: bool, no_body: bool) -> None:
        framing = f"Content-Length: {len(response.body)}"
        head = _head(response.code, response.content_type, response.headers, framing, close)
        self._write(head if no_body else head + response.body)

    async def _send_stream(self, stream: Stream) -> None:
        self._streaming = True
        self._write(_head(200, stream.content_type, stream.headers, "Transfer-Encoding: chunked", False))
        try:
            async for chunk in stream.chunks:
                self._write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
                if not self._writable.is_set():
                    async with asyncio.timeout(self._server.limits.stalled_stream_seconds):
                        await self._writable.wait()
                if self._closing:
                    return
            self._write(b"0\r\n\r\n")
        except TimeoutError:
            self.abort()
        except asyncio.CancelledError:
            self._write(b"0\r\n\r\n")
            raise
        except Exception:
            # The client sees a stream that breaks off, and will list and watch again.
            log.exception("a stream broke off")
            self.abort()
        finally:
            stream.ended()
            close_chunks = getattr(stream.chunks, "aclose", None)
            if close_chunks is not None:
                await close_chunks()
            self.close()

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def _write_error(self, code: int, message: str) -> None:
        """Answers what could not be parsed, and ends the connection: its framing is lost."""
        if self._closing:
            return
        self._closing = True
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
        body = msgspec.json.encode({**status, "code": code})
        self._write(_head(code, JSON, (), f"Content-Length: {len(body)}", True) + body)
        self._linger()

    def _linger(self) -> None:
        """Ends the connection after a while: closing it while the client still sends would take away the answer.

        Until then, what comes is dropped. Over TLS the client learns from the headers alone that nothing follows.
        """
        self.deadline = None
        if self._transport is not None and not self._transport.is_closing():
            if not self._encrypted:
                self._transport.write_eof()
            self._loop.call_later(LINGER_SECONDS, self.close)

    def _refuse_connection(self) -> None:
        self._write_error(503, "too many connections")

    def close(self) -> None:
        """Ends the connection once everything written is sent."""
        self._closing = True
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Ends the connection at once."""
        self._closing = True
        if self._transport is not None:
            self._transport.abort()

    def end_stream(self) -> None:
        """Ends a stream in good order, so that its reader knows it has seen everything."""
        if self._streaming and self._worker is not None:
            self._worker.cancel()

    @property
    def busy(self) -> bool:
        """Whether a request is being answered."""
        return self._worker is not None


class Server:
    """Listens, and keeps the connections."""

    def __init__(self, application: Application, limits: Limits | None = None) -> None:
        self.application = application
        self.limits = limits or Limits()
        self.loop = asyncio.get_running_loop()
        self.stopping = False
        self._connections: set[_Connection] = set()
        self._listeners: list[asyncio.Server] = []
        self._sweeper = self.loop.create_task(self._sweep())

    async def listen(self, host: str, port: int, tls: ssl.SSLContext | None) -> int:
        """Starts to listen; returns the port, which matters if 0 was asked for. Raises OSError."""
        listener = await self.loop.create_server(
            lambda: _Connection(self), host, port, ssl=tls, backlog=1024, **self._tls_limits(tls)
        )
        self._listeners.append(listener)
        bound: int = listener.sockets[0].getsockname()[1]
        return bound

    def _tls_limits(self, tls: ssl.SSLContext | None) -> dict[str, Any]:
        return {"ssl_handshake_timeout": self.limits.header_seconds} if tls else {}

    def admit(self, connection: _Connection) -> bool:
        """Takes a new connection, unless there are too many."""
        if self.stopping or len(self._connections) >= self.limits.connections:
            return False
        self._connections.add(connection)
        return True

    def forget(self, connection: _Connection) -> None:
        """A connection has ended."""
        self._connections.discard(connection)

    @property
    def connection_count(self) -> int:
        """How many clients are connected."""
        return len(self._connections)

    async def _sweep(self) -> None:
        """Ends connections that take too long to send a request, or idle too long."""
        while True:
            await asyncio.sleep(1.0)
            now = self.loop.time()
            for connection in [c for c in self._connections if c.deadline is not None and c.deadline < now]:
                connection.abort()

    async def stop(self, patience: float = 3.0) -> None:
        """Stops listening, ends streams, lets other requests finish for `patience` seconds, then ends everything."""
        self.stopping = True
        for listener in self._listeners:
            listener.close()
        for connection in list(self._connections):
            if connection.busy:
                connection.end_stream()
            else:
                connection.close()
        end = self.loop.time() + patience
        while self._connections and self.loop.time() < end:
            await asyncio.sleep(0.02)
        for connection in list(self._connections):
            connection.abort()
        self._sweeper.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._sweeper
