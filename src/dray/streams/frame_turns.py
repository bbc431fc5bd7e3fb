"""Whose frames are looked at next: each turn of the event loop has some, of all conversations together.

A frame of a few bytes takes as long to handle as thousands of bytes in one, and a read may hold very many. Each
conversation that stops after some would make a turn as long as there are conversations.
"""

from __future__ import annotations

from typing import Final

from dray.process.http.turns import SharedTurns

DIRECTLY: Final = 32
"""Frames that are handled in one turn: the smallest take microseconds."""
BYTES: Final = 8 * 1024
"""So many bytes of a frame count like another frame."""

_turns: Final = SharedTurns(DIRECTLY, BYTES)


async def next_frame(size: int) -> None:
    """Waits until there is time for a frame of so many bytes: at once, unless this turn has had its share."""
    await _turns.next("", size)
