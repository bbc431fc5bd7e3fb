"""Where clients come in: a few in each turn of the event loop, however many come at once.

    accept, some ─▶ waits for its whole first message ─▶ queue ─▶ TLS handshake, begun for a few ─▶ `Connection`
                      (a timer ends those that say nothing)

The first message of TLS is what makes the server work, for most of a millisecond, and anybody may send it. Loops answer
it for all who send it in the same turn: two hundred strangers who had connected before kept everybody waiting.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections import deque
from collections.abc import Callable
from typing import Final

from dray.process.http.messages import Listener

BACKLOG: Final = 1024
ACCEPTED: Final = 32
"""Connections that are accepted in one turn of the loop: that is cheap."""
BEGUN: Final = 4
"""Handshakes that are begun in one turn."""
MOST_SILENT: Final = 4096
"""Connections whose first message has not come; the oldest ends when another one comes."""
RECEIVED_BYTES: Final = 32 * 1024
"""What the system keeps of a connection until it is read, which may be read in one turn of the loop."""
PAUSE_SECONDS: Final = 1.0
"""After this long it is tried again, when the system has no room for one more connection."""

_RECORD, _START = 5, 9
"""Bytes of the head of a TLS record, and of the head of a handshake message in it."""
_HANDSHAKE = 22

log = logging.getLogger(__name__)


class Door:
    """One listener. `port` is where it listens once it is open."""

    def __init__(self, at: Listener, make: Callable[[], asyncio.Protocol], patience: float) -> None:
        """`make` is called for each client; one has `patience` seconds for its handshake."""
        self._at = at
        self._make = make
        self._patience = patience
        self._loop = asyncio.get_running_loop()
        self._sockets: list[socket.socket] = []
        self._silent: dict[socket.socket, float] = {}
        """Those that have not said anything, or not enough, and until when they may; the oldest first."""
        self._whole: set[socket.socket] = set()
        """Those of them that are not looked at before all of their first message is there."""
        self._ready: deque[socket.socket] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._sweeper: asyncio.TimerHandle | None = None

    async def open(self) -> int:
        """Listens; returns the port, of the first address if the host has several. Raises OSError."""
        addresses = await self._loop.getaddrinfo(
            self._at.host, self._at.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        try:
            for family, kind, protocol, _, address in dict.fromkeys(addresses):
                self._listen(socket.socket(family, kind, protocol), address)
        except OSError:
            self.close()
            raise
        self._sweep()
        port: int = self._sockets[0].getsockname()[1]
        return port

    def _listen(self, listening: socket.socket, address: object) -> None:
        self._sockets.append(listening)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVED_BYTES)
        if listening.family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.setblocking(False)
        listening.bind(address)  # type: ignore[arg-type]  # as getaddrinfo gives it
        listening.listen(BACKLOG)
        self._loop.add_reader(listening.fileno(), self._accept, listening)

    def close(self) -> None:
        """Nobody comes in any more; those who are in stay."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        for listening in self._sockets:
            self._loop.remove_reader(listening.fileno())
            listening.close()
        self._sockets.clear()
        for waiting in list(self._silent):
            self._turn_away(waiting)
        while self._ready:
            self._ready.popleft().close()

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(ACCEPTED):
            try:
                client, _address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                log.error("no more connections can be accepted: %s", error)
                self._loop.remove_reader(listening.fileno())
                self._loop.call_later(PAUSE_SECONDS, self._accept_again, listening)
                return
            client.setblocking(False)
            if self._at.tls is None:
                self._let_in_soon(client)
            else:
                self._wait_for(client)

    def _accept_again(self, listening: socket.socket) -> None:
        if listening in self._sockets:
            self._loop.add_reader(listening.fileno(), self._accept, listening)

    def _wait_for(self, client: socket.socket) -> None:
        if len(self._silent) >= MOST_SILENT:
            self._turn_away(next(iter(self._silent)))
        self._silent[client] = self._loop.time() + self._patience
        self._loop.add_reader(client.fileno(), self._look, client)

    def _look(self, client: socket.socket) -> None:
        """Something has come: the client is let in once its first message is whole."""
        if client not in self._whole:
            try:
                start = client.recv(_START, socket.MSG_PEEK)
            except OSError:
                self._turn_away(client)
                return
            missing = _first_message(start)
            if not start or missing is None:
                self._turn_away(client)
                return
            if missing:
                if len(start) == _START:
                    self._whole.add(client)
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, missing)
                return
        self._forget(client)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
        self._let_in_soon(client)

    def _forget(self, client: socket.socket) -> None:
        del self._silent[client]
        self._whole.discard(client)
        self._loop.remove_reader(client.fileno())

    def _turn_away(self, client: socket.socket) -> None:
        self._forget(client)
        client.close()

    def _sweep(self) -> None:
        """Ends those that have said nothing for too long."""
        now = self._loop.time()
        for client in [one for one, until in self._silent.items() if until < now]:
            self._turn_away(client)
        self._sweeper = self._loop.call_later(1.0, self._sweep)

    def _let_in_soon(self, client: socket.socket) -> None:
        self._ready.append(client)
        if len(self._ready) == 1:
            self._loop.call_soon(self._let_in)

    def _let_in(self) -> None:
        for _ in range(min(BEGUN, len(self._ready))):
            task = self._loop.create_task(self._welcome(self._ready.popleft()))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        if self._ready:
            self._loop.call_soon(self._let_in)

    async def _welcome(self, client: socket.socket) -> None:
        patience = self._patience if self._at.tls else None
        with contextlib.suppress(OSError):  # what goes wrong in a handshake, the client is told
            await self._loop.connect_accepted_socket(
                self._make, client, ssl=self._at.tls, ssl_handshake_timeout=patience
            )


def _first_message(start: bytes) -> int | None:
    """How many bytes the first message of a client has, as its first bytes say; as many as tell it, if there are less.

    0 if it is no handshake: whoever reads it will say so. None if it is cut into several records, as no client does
    without an ulterior motive.
    """
    if start[:1] != bytes([_HANDSHAKE]):
        return 0
    if len(start) < _START:
        return _START
    record, message = int.from_bytes(start[3:5], "big"), int.from_bytes(start[6:9], "big")
    return _RECORD + record if message + _START - _RECORD <= record else None
