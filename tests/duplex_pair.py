"""Two ends of a connection in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


class MemoryDuplex:
    """One end; `pair` makes both. What is written waits until it is read."""

    def __init__(self) -> None:
        self._incoming: asyncio.Queue[bytes] = asyncio.Queue(maxsize=64)
        self._other: MemoryDuplex | None = None
        self._ended = False

    @classmethod
    def pair(cls) -> tuple[MemoryDuplex, MemoryDuplex]:
        """Both ends of a new connection."""
        one, other = cls(), cls()
        one._other, other._other = other, one
        return one, other

    async def read(self) -> bytes:
        """What has come; nothing if nothing will."""
        if self._ended:
            return b""
        data = await self._incoming.get()
        self._ended = not data
        return data

    async def write(self, data: bytes) -> None:
        """Sends bytes."""
        assert self._other is not None
        if data:
            await self._other._incoming.put(data)

    async def write_end(self) -> None:
        """Nothing more will be sent."""
        assert self._other is not None
        await self._other._incoming.put(b"")

    def close(self) -> None:
        """Ends the connection, if the other end listens."""
        assert self._other is not None
        if not self._other._incoming.full():
            self._other._incoming.put_nowait(b"")


async def turns_during(work: Coroutine[Any, Any, Any]) -> int:
    """How often others have their turn until work is done."""
    task, turns = asyncio.create_task(work), 0
    while not task.done():
        await asyncio.sleep(0)
        turns += 1
    task.result()
    return turns
