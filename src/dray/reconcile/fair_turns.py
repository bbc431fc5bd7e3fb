"""How much all controllers of a process do in one turn of the event loop, together: others have to get on, too.

Each of twenty controllers has up to fifty workers, and after a start each of them has a key to look at. What one worker
does is short; what all of them do between two looks at the sockets is not.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final
from weakref import WeakKeyDictionary

KEYS_PER_TURN: Final = 16
"""Keys that are begun with in one turn, whoever's they are: a tenth of a millisecond each, some of them more."""


class FairTurns:
    """Lets so many begin in a turn of a loop; the others come in the next ones, in the order in which they asked."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._new_future = loop.create_future
        self._call_soon = loop.call_soon
        self._left = KEYS_PER_TURN
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_counting = False

    async def take(self) -> None:
        """Returns when there is room in a turn."""
        if not self._is_counting:
            self._is_counting = True
            self._call_soon(self._begin)
        if self._left:
            self._left -= 1
            return
        waiter = self._new_future()
        self._waiting.append(waiter)
        await waiter

    def _begin(self) -> None:
        """A turn begins: for those who wait, and as far as there is room, for those who come in it."""
        if self._left == KEYS_PER_TURN:  # nobody came in the turn before
            self._is_counting = False
            return
        self._left = KEYS_PER_TURN
        self._call_soon(self._begin)
        while self._left and self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():  # its worker was not cancelled
                waiter.set_result(None)
                self._left -= 1


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, FairTurns] = WeakKeyDictionary()


def of_running_loop() -> FairTurns:
    """The turns of the loop that runs: all controllers on it share them."""
    loop = asyncio.get_running_loop()
    found = _by_loop.get(loop)
    if found is None:
        found = _by_loop[loop] = FairTurns(loop)
    return found
