"""Who is next: each turn of the event loop has some of what connections bring and take, and the rest waits.

    input ─▶ enter ─┬─ nobody waits, this turn has room ─▶ looked at
                    └─ waits in its owner's queue ─▶ a few in each turn of the loop, one of each owner in turn

A loop reads from every connection that has something, in one turn. To decrypt a megabyte and to put it where it belongs
takes about three milliseconds, and to find out what a small request wants, and whether it may, a tenth of one: two
hundred connections that brought large bodies at once kept the loop for 0.3 s. And whoever has one connection waited for
all that somebody with many had brought before: now for a few of them, however many those are. What is written waits
alike: five hundred watches that heard of one large object, or read long lists, took as long.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

AT_ONCE: Final = 4
"""Pieces of those that wait which go on in one turn."""
DIRECTLY: Final = 4
"""Pieces of input that are looked at as they come, in one turn."""


class _Waiting(NamedTuple):
    go_on: Callable[[], None]
    pieces: int


class Turns:
    """The connections that wait to go on: owners take turns, and of each the one that waits for longest is first."""

    def __init__(self, loop: asyncio.AbstractEventLoop, directly: int = DIRECTLY, at_once: int = AT_ONCE) -> None:
        self._loop = loop
        self._waiting: dict[str, deque[_Waiting]] = {}
        """By owner, the one whose turn it is first."""
        self._directly = self._room = directly
        self._at_once = at_once
        self._turning = False

    def enter(self, pieces: int = 1) -> bool:
        """Whether what has come is looked at now, which takes as long as so many pieces; if not, one has to `wait`."""
        if self._room <= 0 or self._waiting:
            return False
        self._room -= pieces
        self._keep_turning()
        return True

    def wait(self, owner: str, go_on: Callable[[], None], pieces: int = 1) -> None:
        """Has `go_on` called in one of the next turns of the loop."""
        queue = self._waiting.get(owner)
        if queue is None:
            queue = self._waiting[owner] = deque()
        queue.append(_Waiting(go_on, pieces))
        self._keep_turning()

    def _keep_turning(self) -> None:
        if not self._turning:
            self._turning = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._turning = False
        self._room = self._directly
        for go_on in self._next_few():  # what waits again on the way does so until the next turn
            go_on()
        if self._waiting:
            self._keep_turning()

    def _next_few(self) -> list[Callable[[], None]]:
        few: list[Callable[[], None]] = []
        left = self._at_once
        while self._waiting and left > 0:
            owner = next(iter(self._waiting))
            queue = self._waiting.pop(owner)
            first = queue.popleft()
            few.append(first.go_on)
            left -= first.pieces
            if queue:
                self._waiting[owner] = queue  # behind the other owners
        return few


class SharedTurns:
    """What all on one loop share who go on by themselves."""

    def __init__(self, pieces: int, piece_bytes: int) -> None:
        """A turn has so many pieces; a piece is something small, or so many bytes."""
        self._pieces = pieces
        self._piece_bytes = piece_bytes
        self._of: WeakKeyDictionary[asyncio.AbstractEventLoop, Turns] = WeakKeyDictionary()

    async def next(self, owner: str, size: int) -> None:
        """Waits until there is time for so many bytes of somebody: at once, unless this turn has had its share."""
        loop = asyncio.get_running_loop()
        turns = self._of.get(loop)
        if turns is None:
            turns = self._of[loop] = Turns(loop, self._pieces, self._pieces)
        pieces = 1 + size // self._piece_bytes
        if turns.enter(pieces):
            return
        begun = loop.create_future()
        turns.wait(owner, lambda: None if begun.done() else begun.set_result(None), pieces)
        await begun
