"""The connection pool of a client, which leaves nothing behind when it is closed.

Two things go on in the background after a request was cancelled, as every watch is in the end:

- A connection that is left in the middle of an answer says goodbye over TLS; aiohttp's pool has forgotten it by then.
- A connection that is just being opened is opened to its end: uvloop trips over a handshake that is cancelled.

A loop that ends meanwhile would leave sockets to the garbage collector, and uvloop would fail to end at all. So closing
the pool waits for what is being opened, then cuts off every socket that is left and waits until its holder has noticed.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import weakref
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler
from yarl import URL

from dray.client import socks

POLL_SECONDS = 0.001
LONGEST_WAIT = 1.0


class Connector(aiohttp.TCPConnector):
    """Without a limit: watches hold their connections for minutes. A SOCKS proxy is the way to all hosts."""

    def __init__(self, socks_proxy: URL | None) -> None:
        super().__init__(limit=0, ssl=False, socket_factory=self._make_socket)
        self._socks = socks_proxy
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._openings: set[asyncio.Task[ResponseHandler]] = set()

    async def close(self, *, abort_ssl: bool = False) -> None:
        """Ends all connections; none is left when this returns."""
        await super().close(abort_ssl=abort_ssl)
        if self._openings:
            _, slow = await asyncio.wait(self._openings, timeout=LONGEST_WAIT)
            for opening in slow:  # nobody answers at that address
                opening.cancel()
            await asyncio.gather(*slow, return_exceptions=True)
        for one in self._open_sockets():
            with contextlib.suppress(OSError):  # the other end was faster
                one.shutdown(socket.SHUT_RDWR)
        end = self._loop.time() + LONGEST_WAIT
        while self._open_sockets() and self._loop.time() < end:
            await asyncio.sleep(POLL_SECONDS)

    async def _create_connection(self, *arguments: Any, **options: Any) -> ResponseHandler:
        opening = self._loop.create_task(super()._create_connection(*arguments, **options))
        self._openings.add(opening)
        opening.add_done_callback(self._openings.discard)
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_abandon)
            raise

    async def _resolve_host(self, host: str, port: int, traces: Any = None) -> list[Any]:
        """Where to connect to: the proxy, which alone may know the name of the server, or the server."""
        if self._socks is not None:
            host, port = self._socks.host or "", self._socks.port or socks.DEFAULT_PORT
        return await super()._resolve_host(host, port, traces)

    async def _wrap_create_connection(self, *arguments: Any, **options: Any) -> Any:
        if self._socks is None:
            return await super()._wrap_create_connection(*arguments, **options)
        request, timeout, addresses = options.pop("req"), options.pop("timeout"), options.pop("addr_infos")
        options.pop("client_error", None)
        try:
            async with asyncio.timeout(timeout.sock_connect):
                sock = self._make_socket(addresses[0])
                sock.setblocking(False)
                try:
                    await self._loop.sock_connect(sock, addresses[0][4])
                    await socks.connect_through(sock, self._socks, request.url.raw_host, request.url.port)
                except BaseException:
                    sock.close()
                    raise
                return await self._loop.create_connection(*arguments, **options, sock=sock)
        except TimeoutError:
            raise
        except OSError as error:
            raise aiohttp.ClientConnectionError(f"the proxy {self._socks.host}:{self._socks.port}: {error}") from error

    def _make_socket(self, address: tuple[Any, ...]) -> socket.socket:
        """A socket for an address as `getaddrinfo` tells it. Raises OSError."""
        family, type_, protocol, *_ = address
        made = socket.socket(family, type_, protocol)
        self._sockets.add(made)
        return made

    def _open_sockets(self) -> list[socket.socket]:
        return [one for one in self._sockets if one.fileno() >= 0]


def _abandon(opening: asyncio.Task[ResponseHandler]) -> None:
    """Nobody waits for this connection any more."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result().abort()
