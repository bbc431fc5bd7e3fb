"""Large answers that are made or not read yet: how many bytes of them each caller has.

    a long list ─▶ take ─┬─ the caller has few bytes on their way ─▶ made ─▶ sent, or nobody waits ─▶ given back
                         └─ waits until the caller has read others

A client that asks for the same long list on many connections and reads none would have the server hold all of them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final

from dray.process.http import Request

if TYPE_CHECKING:
    from dray.server.engine import Turn

LARGE: Final = 1024 * 1024
"""Bytes from which on an answer is counted."""
MOST_OF_ONE: Final = 128 * 1024 * 1024
"""Bytes of one caller. An answer that is larger than that is made when there is no other."""


class UnreadAnswers:
    """Counts bytes from before an answer is made until it is sent."""

    def __init__(self) -> None:
        self._of: dict[str, int] = {}
        self._waiting: dict[str, deque[tuple[int, asyncio.Future[None]]]] = {}

    async def take(self, request: Request, size: int, turn: Turn | None = None) -> None:
        """Waits until an answer of so many bytes may be made for a request, outside of the caller's turn."""
        if size <= LARGE or request.sent is not None:
            return
        owner = request.owner
        if self._has_room(owner, size):
            self._of[owner] = self._of.get(owner, 0) + size
        else:
            await self._wait(owner, size, turn)
        request.sent = partial(self._give_back, owner, size)

    async def _wait(self, owner: str, size: int, turn: Turn | None) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append((size, waiter))
        if turn is not None:
            turn.step_out()
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._give_back(owner, size)  # let in and cancelled in the same turn
            raise
        finally:
            if turn is not None:
                turn.step_in()

    def _has_room(self, owner: str, size: int) -> bool:
        held = self._of.get(owner, 0)
        return owner not in self._waiting and (not held or held + size <= MOST_OF_ONE)

    def _give_back(self, owner: str, size: int) -> None:
        held = self._of.pop(owner) - size
        queue = self._waiting.pop(owner, None)
        while queue and (queue[0][1].done() or not held or held + queue[0][0] <= MOST_OF_ONE):
            wanted, waiter = queue.popleft()
            if not waiter.done():  # else its client is gone
                held += wanted
                waiter.set_result(None)
        if held:
            self._of[owner] = held
        if queue:
            self._waiting[owner] = queue
