"""Work that is too much for one turn of the event loop, gone on with in the next ones, some of it in each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class LaterTurns:
    """Calls `go_on` once in every turn while something is left. Others have theirs in between."""

    def __init__(self, is_left: Callable[[], bool], go_on: Callable[[], None]) -> None:
        self._is_left = is_left
        self._go_on = go_on
        self._next: asyncio.Handle | None = None

    def look(self) -> None:
        """There may be something left."""
        if self._next is None and self._is_left():
            self._next = asyncio.get_running_loop().call_soon(self._run)

    def stop(self) -> None:
        """What is left is not gone on with."""
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def _run(self) -> None:
        self._next = None
        self._go_on()
        self.look()
