"""Whose frames are looked at next: each turn of the event loop has some, of all conversations together.

A frame of a few bytes takes as long to handle as thousands of bytes in one, and a read may hold very many. Each
conversation that stops after some would make a turn as long as there are conversations.
"""

from __future__ import annotations

import asyncio
from typing import Final
from weakref import WeakKeyDictionary

from dray.process.http.reading_turns import ReadingTurns

_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, ReadingTurns] = WeakKeyDictionary()
"""One for each loop: its turns are what all conversations on it share."""

DIRECTLY: Final = 32
"""Frames that are handled as they come, in one turn: the smallest take microseconds."""
BYTES: Final = 8 * 1024
"""So many bytes of a frame count like another frame."""


async def next_frame(size: int) -> None:
    """Waits until there is time for a frame of so many bytes: at once, unless this turn has had its share."""
    loop = asyncio.get_running_loop()
    turns = _turns.get(loop)
    if turns is None:
        turns = _turns[loop] = ReadingTurns(loop, DIRECTLY)
    if turns.enter(1 + size // BYTES):
        return
    begun = loop.create_future()
    turns.wait("", lambda: None if begun.done() else begun.set_result(None))
    await begun
