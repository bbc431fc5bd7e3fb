"""One client's connection: bytes become requests, requests are admitted and answered one after the other."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING

import httptools

from dray.api.visible import visible
from dray.process.http.duplex import ConnectionDuplex
from dray.process.http.head import HEADER_BYTES, HeadError, body_length, header_key, request_of
from dray.process.http.messages import (
    MAX_BODY_BYTES,
    MAX_HEADER_BYTES,
    SMALL_BODY,
    Peer,
    Queued,
    Request,
    Response,
    Stream,
    Upgrade,
    failure,
    head_bytes,
    upgrade_bytes,
)
from dray.process.http.repeated_heads import RepeatedHead, remember
from dray.process.http.writing import Writing

if TYPE_CHECKING:
    from dray.process.http.server import Server

MAX_PIPELINED = 16
LINGER_SECONDS = 2.0
PIECE = 8 * 1024
"""So much is given to the parser in one turn of the loop, unless all is the body of one request: small parts of
requests cost more than their bytes, and it keeps a header until it has seen its end."""
MOST_RAW = 64 * 1024
LARGE_HEAD = failure(431, f"request headers larger than {MAX_HEADER_BYTES} bytes")

log = logging.getLogger(__name__)


class Connection(Writing, asyncio.Protocol):
    """One client. Requests of a connection are answered one after the other."""

    def __init__(self, server: Server) -> None:
        super().__init__(server.limits.stalled_stream_seconds)
        self._server = server
        self._loop = server.loop
        self._parser: httptools.HttpRequestParser | None = httptools.HttpRequestParser(self)
        self._peer = Peer("")
        self._queue: deque[Queued] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._deaf = False
        self._encrypted = False
        self._streaming = False
        self._silent = 0
        self._heard = False
        self._is_inside = False
        """Whether a request has begun whose end has not come."""
        self._told: Request | None = None
        self._repeated: RepeatedHead | None = None
        self._upgrades = False
        self._raw = b""
        self._rest: deque[bytes | memoryview] = deque()
        """What has come and is not yet given to the parser; no more than another piece is read meanwhile."""
        self._is_paused = False
        self._duplex: ConnectionDuplex | None = None
        self._has_ended = False
        self.idle_since = self._loop.time()
        self.deadline: float | None = self.idle_since + server.limits.header_seconds
        self._reset()

    def _reset(self) -> None:
        self._url = b""
        self._headers: dict[str, str] = {}
        self._header_bytes = 0
        self._head: Request | None = None
        self._in_body = False
        self._body: bytes | bytearray = b""
        self._body_bytes = 0
        self._body_left = 0
        """Bytes that are still to come of a body that says how long it is."""
        self._kept = 0
        self._refusal: Response | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the loop, after the TLS handshake where there is one."""
        self._transport = transport  # type: ignore[assignment]  # that of a stream
        address = transport.get_extra_info("peername")
        certificate = transport.get_extra_info("peercert") or None
        self._encrypted = transport.get_extra_info("ssl_object") is not None
        if self._encrypted:  # who waits to read on does so with little in hand
            self._transport.set_read_buffer_limits(PIECE)  # type: ignore[union-attr]  # that of TLS has it
        self._peer = Peer(str(address[0]) if address else "", certificate)
        self.owner = self._peer.address
        if not self._server.take(self):
            self._end_with(failure(503, "too many connections"))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - as asyncio calls it
        """Called by the loop when the other end is gone."""
        self._closing = True
        self._server.forget(self)
        self._writable.set()
        if self._duplex is not None:
            self._duplex.feed_end()
        self._drop_body()
        self._forget_head()
        while self._queue:
            self._release(self._queue.popleft().request)
        if self._worker is not None:
            self._worker.cancel()
        self._rest.clear()
        # Both hold the connection: without it nothing is left that only a garbage collection would find.
        self._parser = self._transport = None

    def data_received(self, data: bytes) -> None:
        """Called by the loop. The parser gets a piece at a time, and is stopped if many pieces make no sense to it."""
        if not self._rest and len(data) <= PIECE and self._server.reading.enter():
            self._take(data)
            return
        if self._rest or len(data) > PIECE:
            self._pause()
        if not self._rest:
            self._server.reading.wait(self.owner, self._feed_rest)
        self._rest.append(data)

    def _take(self, data: bytes) -> None:
        """What has come all at once: most often a request, with the headers of the one before."""
        if self._is_inside or self._repeated is None or not self._take_repeated(self._repeated, data):
            self._feed(data)
            if (self._in_body or self._closing) and self._duplex is None:
                self._pause()  # more of a body is to come, or what comes is dropped
                self._server.reading.wait(self.owner, self._read_on)

    def _pause(self) -> None:
        """Reads nothing until `_read_on`."""
        if self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()

    def _feed_rest(self) -> None:
        """A piece of what has come; the next one in another turn of the loop, so that others have theirs."""
        if not self._rest or self._transport is None:
            return  # the connection is lost
        if self._duplex is not None:
            self._read_on()  # whoever reads a duplex may tell it to wait again
            while self._rest:
                self._feed(self._rest.popleft())
            self._feed_end()
            return
        data = self._rest.popleft()
        if not self._is_paused:
            self._take(bytes(data))
            return
        size = max(PIECE, self._body_left)
        if len(data) > size and not self._closing:
            self._rest.appendleft(memoryview(data)[size:])
        self._feed(data[:size])
        self._server.reading.wait(self.owner, self._feed_rest if self._rest else self._read_on)

    def _feed_end(self) -> None:
        """Tells the other protocol that nothing more will come, after all that has."""
        if self._has_ended and self._duplex is not None and not self._rest:
            self._duplex.feed_end()

    def _read_on(self) -> None:
        if self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()

    def _keep_raw(self, data: bytes) -> None:
        """Bytes after a request for another protocol, which who asks for one should not send before it is granted."""
        if self._upgrades:
            self._raw += data
            if len(self._raw) > MOST_RAW:
                self.abort()

    def _feed(self, piece: bytes | memoryview) -> None:
        if self._duplex is not None:
            self._duplex.feed(bytes(piece))
            return
        if self._closing:
            return
        if self._deaf:
            self._keep_raw(bytes(piece))
            return
        self._heard = False
        begins, self._told = not self._is_inside, None
        assert self._parser is not None  # nothing comes after the connection is lost
        try:
            self._parser.feed_data(piece)
            if begins and self._told is not None and not self._is_inside:
                self._repeated = remember(bytes(piece), self._told)
        except httptools.HttpParserUpgrade as upgrade:
            # Nobody has to upgrade: the request is answered, and is the last one. What follows is no HTTP.
            self._deaf = True
            self._keep_raw(bytes(piece[upgrade.args[0] :]))
        except httptools.HttpParserError:
            self._end_with(failure(400, "malformed HTTP request"))
        if self._heard:
            self._silent = 0
            return
        # The start of a header or of a trailer, whose end has not come: the parser holds it all.
        self._silent += len(piece)
        if self._silent > MAX_HEADER_BYTES:
            self._end_with(failure(431, f"a request header is larger than {MAX_HEADER_BYTES} bytes"))

    def eof_received(self) -> bool:
        """A half-closed connection gets its answers, but no stream: who is gone looks so, too. TLS never is."""
        self._drop_body()
        if self._duplex is not None:
            self._has_ended = True
            self._feed_end()
            return not self._encrypted
        self._closing |= self._encrypted or self._streaming or not (self._worker or self._queue or self._rest)
        return not self._closing

    def pause_writing(self) -> None:
        """Called by the loop when the client reads too slowly."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Called by the loop when the client has caught up."""
        self._writable.set()

    def on_message_begin(self) -> None:
        """Called by the parser at the start of a request."""
        self._heard = True
        self._is_inside = True
        self._reset()
        self.deadline = self._loop.time() + self._server.limits.header_seconds

    def on_url(self, url: bytes) -> None:
        """Called by the parser, perhaps in pieces."""
        self._heard = True
        self._url += url
        self._header_bytes += len(url)
        if self._header_bytes > MAX_HEADER_BYTES:
            self._end_with(LARGE_HEAD)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by the parser for each header, and for trailers, which nobody asks for: they are counted alone."""
        self._heard = True
        if self._closing:
            return
        self._header_bytes += len(name) + len(value) + HEADER_BYTES
        if self._header_bytes > MAX_HEADER_BYTES:
            self._end_with(LARGE_HEAD)
        if self._in_body:
            return
        key = header_key(name)
        text = value.decode("latin-1")
        self._headers[key] = f"{self._headers[key]},{text}" if key in self._headers else text

    def on_headers_complete(self) -> None:
        """Called by the parser before the body: if there is one, whoever sends it has to be let in first."""
        self._heard = True
        self._in_body = True
        if self._closing:
            return
        self.deadline = self._loop.time() + self._server.limits.body_seconds
        assert self._parser is not None
        try:
            length = body_length(self._headers, self._parser.get_http_version())
        except HeadError as error:
            self._end_with(failure(error.code, str(error)))
            return
        if length == 0:
            return
        self._body_left = length or 0
        waits = self._headers.get("expect", "").lower() == "100-continue"
        head = self._head = self._parsed()
        if head is None:
            return
        head.oversized = self._body_left > MAX_BODY_BYTES
        self._refusal = self._server.admit(head)
        if self._refusal is None:
            if waits:
                self._write(b"HTTP/1.1 100 Continue\r\n\r\n")
        elif length is None or waits or length > SMALL_BODY:
            self._refuse(head, self._refusal)

    def _refuse(self, request: Request, refusal: Response) -> None:
        """Answers a request whose body is not read: nothing more is understood on this connection."""
        self._deaf = True
        self._drop_body()
        self._forget_head()
        self._enqueue(Queued(request, refusal, last=True))

    def on_body(self, data: bytes) -> None:
        """Called by the parser, in pieces. What is too large or refused is counted, not kept."""
        self._heard = True
        self._body_left = max(0, self._body_left - len(data))
        if self._closing or self._deaf or self._refusal is not None or self._head is None:
            return
        self._body_bytes += len(data)
        if self._body_bytes > MAX_BODY_BYTES:
            self._drop_body()
            if self._body_bytes > 16 * MAX_BODY_BYTES:
                self._end_with(failure(413, f"Request entity too large: limit is {MAX_BODY_BYTES}"))
        elif self._server.bodies.take(self._head.owner, len(data)):
            self._kept += len(data)
            if not self._body:
                self._body = data
            else:  # not kept one by one: a piece of one byte would take forty
                self._body = self._body if isinstance(self._body, bytearray) else bytearray(self._body)
                self._body += data
        else:
            self._refuse(self._head, failure(429, "too many large requests at once; try again later"))

    def _drop_body(self) -> None:
        """Lets go of what has come of a body."""
        self._body = b""
        if self._kept and self._head is not None:
            self._server.bodies.give_back(self._head.owner, self._kept)
        self._kept = 0

    def _forget_head(self) -> None:
        """A request that is never handed on: what was learned from its head names it, and would keep it."""
        if self._head is not None:
            self._head.admitted = None
            self._head = None

    def _release(self, request: Request) -> None:
        """A request is answered, or nobody waits for that: nothing is held for it any more."""
        self._server.know(self, request.owner)
        request.admitted = None  # it names the request, and would keep it
        if request.body:
            self._server.bodies.give_back(request.owner, len(request.body))

    def on_message_complete(self) -> None:
        """Called by the parser at the end of a request."""
        self._heard = True
        self._in_body = False
        self._is_inside = False
        self.deadline = None if self._closing else self._loop.time() + self._server.limits.idle_seconds
        if self._closing or self._deaf or self._is_flooded():
            return
        request = self._told = self._head or self._parsed()
        if request is None:
            return
        self._upgrades = bool(request.header("upgrade"))
        request.oversized = self._body_bytes > MAX_BODY_BYTES
        request.body, self._kept = bytes(self._body), 0
        self._body = b""
        assert self._parser is not None
        ends, old = not self._parser.should_keep_alive(), self._parser.get_http_version() == "1.0"
        self._enqueue(Queued(request, self._refusal, last=False, ends=ends, old=old))

    def _is_flooded(self) -> bool:
        """Whether there are more requests than are taken before the first is answered; the connection ends then."""
        if len(self._queue) < MAX_PIPELINED:
            return False
        self._end_with(failure(429, "too many pipelined requests"))
        return True

    def _take_repeated(self, head: RepeatedHead, data: bytes) -> bool:
        """Takes a request with the headers of the one before; False if it is to be parsed."""
        told = None if self._closing or self._deaf or self._duplex is not None else head.read(data)
        if told is None:
            return False
        self.deadline = self._loop.time() + self._server.limits.idle_seconds
        request = None if self._is_flooded() else self._request(told.method, told.uri, head.headers)
        if request is None:
            return True
        if not told.body:
            if not self._answer_at_once(request):
                self._enqueue(Queued(request, None, last=False))
            return True
        refusal = self._server.admit(request)
        if refusal is None:
            if not self._server.bodies.take(request.owner, len(told.body)):
                self._refuse(request, failure(429, "too many large requests at once; try again later"))
                return True
            request.body = told.body
        self._enqueue(Queued(request, refusal, last=False))
        return True

    def _answer_at_once(self, request: Request) -> bool:
        """Answers without a task, if nothing is before the request and nobody has to wait; False if it is not so."""
        if self._worker is not None or self._server.leaving or not self._writable.is_set():
            return False
        answer = self._server.at_once(request)
        if answer is None:
            return False
        self._write_small(answer)
        self._server.know(self, request.owner)
        self.idle_since = self._loop.time()
        return True

    def _enqueue(self, queued: Queued) -> None:
        self._queue.append(queued)
        if self._worker is None:
            self._worker = self._loop.create_task(self._answer_all())

    def _parsed(self) -> Request | None:
        assert self._parser is not None
        return self._request(self._parser.get_method().decode("latin-1"), self._url.decode("latin-1"), self._headers)

    def _request(self, method: str, uri: str, headers: dict[str, str]) -> Request | None:
        """The request as its head has it; None if that is not read, and answered so."""
        try:
            return request_of(method, uri, headers, self._peer)
        except HeadError as error:
            self._end_with(failure(error.code, str(error)))
            return None

    async def _answer_all(self) -> None:
        try:
            while self._queue and not self._closing:
                queued = self._queue.popleft()
                self.deadline = None
                try:
                    if not await self._answer(queued):
                        return
                finally:
                    queued.request.end()
                self.idle_since = self._loop.time()
                self.deadline = self.idle_since + self._server.limits.idle_seconds
        finally:
            self._worker = None

    async def _answer(self, queued: Queued) -> bool:
        """Answers a request; False if nothing follows on this connection."""
        request = queued.request
        try:
            answer = queued.refusal or await self._server.application(request)
        except Exception:
            log.exception("a mistake while answering %s %s", request.method, visible(request.path[:200]))
            answer = failure(500, "the server made a mistake, which is in its log")
        finally:
            self._release(request)
        if isinstance(answer, Stream):
            self._streaming = True
            await self._send_stream(answer, chunked=not queued.old)
            return False
        if isinstance(answer, Upgrade):
            await self._converse(answer)
            return False
        close = queued.last or queued.ends or self._deaf or self._server.leaving
        await self._send(answer, close, request.method == "HEAD", queued.old)
        if close:
            self._linger() if queued.last else self.close()
        return not close

    async def _converse(self, answer: Upgrade) -> None:
        """Gives the connection to another protocol until that is done with it."""
        assert self._transport is not None
        self._streaming = True
        self._write(upgrade_bytes(answer))
        duplex = self._duplex = ConnectionDuplex(self._transport, self._writable, self._raw)
        self._raw = b""
        try:
            await answer.converse(duplex)
        except OSError as error:
            log.debug("a connection broke off: %s", error)
        except Exception:
            log.exception("a connection broke off")
            self.abort()
        finally:
            answer.ended()
            self.close()

    def _end_with(self, response: Response) -> None:
        """Answers what could not be parsed, and ends the connection: its framing is lost."""
        if self._closing:
            return
        self._closing = True
        self._drop_body()
        framing = f"Content-Length: {len(response.body)}"
        self._write(head_bytes(response.code, response.content_type, response.headers, framing, True) + response.body)
        self._linger()

    def _linger(self) -> None:
        """Ends the connection after a while: closing it while the client still sends would take away the answer.

        Until then, what comes is dropped. Over TLS the client learns from the headers alone that nothing follows.
        """
        self._closing = True
        self.deadline = None
        if self._transport is not None and not self._transport.is_closing():
            if not self._encrypted:
                self._transport.write_eof()
            self._loop.call_later(LINGER_SECONDS, self.close)

    def end_stream(self) -> None:
        """Ends a stream in good order, so that its reader knows it has seen everything."""
        if self._streaming and self._worker is not None:
            self._worker.cancel()

    @property
    def busy(self) -> bool:
        """Whether a request is being answered."""
        return self._worker is not None
