"""Whose input is looked at next: each turn of the event loop has some of it, and the connections of the rest wait.

A loop reads from every connection that has something, in one turn. To decrypt a megabyte and to put it where it belongs
takes about three milliseconds, and to find out what a small request wants, and whether it may, a tenth of one: two
hundred connections that brought large bodies at once kept the loop for 0.3 s.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

AT_ONCE: Final = 8
"""Connections of those that wait which go on in one turn."""
DIRECTLY: Final = 32
"""Pieces of input that are looked at as they come, in one turn."""


class ReadingTurns:
    """The connections that wait to go on, those that wait for longest first."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Callable[[], None]] = deque()
        self._room = DIRECTLY
        self._turning = False

    def enter(self, pieces: int = 1) -> bool:
        """Whether what has come is looked at now, which takes as long as so many pieces; if not, one has to `wait`."""
        if self._room <= 0:
            return False
        self._room -= pieces
        self._keep_turning()
        return True

    def wait(self, go_on: Callable[[], None]) -> None:
        """Has `go_on` called in one of the next turns of the loop."""
        self._waiting.append(go_on)
        self._keep_turning()

    def _keep_turning(self) -> None:
        if not self._turning:
            self._turning = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._turning = False
        self._room = DIRECTLY
        for _ in range(min(AT_ONCE, len(self._waiting))):
            self._waiting.popleft()()
        if self._waiting:
            self._keep_turning()
