"""What has come on a connection and nobody has read yet: bounded in bytes, whatever the pieces are that it came in."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

HELD_AT_MOST: Final = 256 * 1024
PIECE_BYTES: Final = 64
"""What a piece takes besides its bytes, so that very small ones count."""


class Held:
    """How much is held on one connection, over all its streams. Whoever brings more waits for room."""

    def __init__(self) -> None:
        self._size = 0
        self._room = asyncio.Event()
        self._room.set()

    async def room(self) -> None:
        """Waits until somebody has read enough."""
        await self._room.wait()

    def change(self, size: int) -> None:
        """So many bytes more, or less."""
        self._size += size
        if self._size > HELD_AT_MOST:
            self._room.clear()
        else:
            self._room.set()


class Pieces:
    """What has come on one stream, in order, on the account of its connection."""

    def __init__(self, held: Held) -> None:
        self._held = held
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._changed = asyncio.Event()

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def put(self, data: bytes) -> None:
        """Adds a piece; whoever brings it has waited for room."""
        self._pieces.append(data)
        self._count(len(data) + PIECE_BYTES)
        self._changed.set()

    def wake(self) -> None:
        """Whoever waits is to look again, also if nothing came."""
        self._changed.set()

    async def wait(self) -> None:
        """Until something came, or `wake`."""
        self._changed.clear()
        await self._changed.wait()

    async def get(self) -> bytes:
        """The next piece."""
        while not self._pieces:
            await self.wait()
        data = self._pieces.popleft()
        self._count(-len(data) - PIECE_BYTES)
        return data

    def take_all(self) -> bytes:
        """All that is there."""
        data = b"".join(self._pieces)
        self._pieces.clear()
        self._count(-self._size)
        return data

    def _count(self, size: int) -> None:
        self._size += size
        self._held.change(size)
