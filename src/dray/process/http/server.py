"""Listens, keeps the connections and what they share."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from operator import attrgetter

from dray.process import memory
from dray.process.http.connection import Connection
from dray.process.http.door import Door
from dray.process.http.held_bodies import HeldBodies
from dray.process.http.messages import Answer, Limits, Listener, Request, Response
from dray.process.http.places import Places
from dray.process.http.turns import Turns

Application = Callable[[Request], Awaitable[Answer]]
Admission = Callable[[Request], Response | None]
"""Looks at the head of a request; the answer if it is refused."""
AtOnce = Callable[[Request], Response | None]
"""Answers a request without a body that nobody has to wait for, with a few bytes; None if the application does."""

CROWDED = 0.8
"""From this share of all connections on, those that could be ended are kept in mind."""
IDLE_SECONDS = 5.0
"""For so long a connection may be idle, however many others want one."""


class Server:
    """Listens, and keeps the connections."""

    def __init__(
        self,
        application: Application,
        limits: Limits | None = None,
        admit: Admission = lambda _request: None,
        at_once: AtOnce = lambda _request: None,
    ) -> None:
        """`admit` sees the head of a request that has a body, before that is read.

        `at_once` is asked before `application` where that saves a task: for one more request of a connection.
        """
        self.application = application
        self.admit = admit
        self.at_once = at_once
        self.limits = limits or Limits()
        self.bodies = HeldBodies(self.limits)
        self.loop = asyncio.get_running_loop()
        self.reading = Turns(self.loop)
        self.leaving = False
        """Answers end their connections, so that clients go elsewhere."""
        self.stopping = False
        self._connections: Places[Connection] = Places(self.limits.connections)
        self._idle: list[Connection] = []
        self._doors: list[Door] = []
        self._sweeper = self.loop.create_task(self._sweep())

    async def listen(self, at: Listener) -> int:
        """Starts to listen; returns the port, which matters if 0 was asked for. Raises OSError."""
        door = Door(at, lambda: Connection(self), self.limits.header_seconds)
        port = await door.open()
        self._doors.append(door)
        return port

    def take(self, connection: Connection) -> bool:
        """Takes a new connection, unless there are too many, and none that somebody can do without."""
        if self.stopping or (self._connections.are_taken and not (self._end_an_idle_one() or self._end_one_of_many())):
            return False
        self._connections.give(connection, connection.owner)
        return True

    def know(self, connection: Connection, owner: str) -> None:
        """Somebody has sent a request on a connection; empty if nobody knows who."""
        if owner and owner != connection.owner:
            connection.owner = owner
            if connection in self._connections:
                self._connections.give(connection, owner)

    def _end_an_idle_one(self) -> bool:
        """Makes room: the connection that is idle for longest ends."""
        while self._idle:
            longest = self._idle.pop()
            if longest in self._connections and not longest.busy and self._is_idle(longest):
                self.forget(longest)
                longest.abort()
                return True
        return False

    def _end_one_of_many(self) -> bool:
        """Makes room: who has a large share of all connections loses one, busy or not."""
        longest = self._connections.find_dispensable()
        if longest is None:
            return False
        self.forget(longest)
        longest.abort()
        return True

    def _is_idle(self, connection: Connection) -> bool:
        return self.loop.time() - connection.idle_since > IDLE_SECONDS

    def forget(self, connection: Connection) -> None:
        """A connection has ended."""
        self._connections.take_back(connection)

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
            if self.bodies.left_much():
                await asyncio.to_thread(memory.trim)
            if self.connection_count > CROWDED * self.limits.connections:
                idle = [c for c in self._connections if not c.busy and self._is_idle(c)]
                self._idle = sorted(idle, key=attrgetter("idle_since"), reverse=True)
            else:
                self._idle.clear()

    def leave(self) -> None:
        """Goes on with what comes, and lets every client know that this is not for long."""
        self.leaving = True

    async def stop(self, patience: float) -> None:
        """Stops listening, ends streams, lets other requests finish for `patience` seconds, then ends everything."""
        self.leaving = self.stopping = True
        for door in self._doors:
            door.close()
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
