"""A socket that stays: listened on, and listened on again if somebody removes it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

import grpc
import grpc.aio

from dray.driver.errors import DriverError
from dray.plugins import unix


class Listener:
    """One server on one socket."""

    def __init__(self, path: Path, handlers: Iterable[grpc.GenericRpcHandler]) -> None:
        self.path = path
        self._handlers = tuple(handlers)
        self._server: grpc.aio.Server | None = None

    async def ensure(self) -> None:
        """Listens, unless it does already and the socket is still there. Raises DriverError."""
        if self._server is not None and self.path.exists():
            return
        await self.stop(0)
        try:
            self._server = await unix.listen(self.path, self._handlers)
        except unix.SocketError as error:
            raise DriverError(str(error)) from None

    async def stop(self, patience: float) -> None:
        """Lets calls in progress end within so many seconds, and removes the socket."""
        if self._server is None:
            return
        server, self._server = self._server, None
        await server.stop(patience)
        with contextlib.suppress(OSError):
            unix.remove_stale(self.path)
