"""An event loop of its own, in a thread, for talking to servers of strangers.

What they send, and how: in a million pieces, with endless headers, after a handshake that takes long, from a host whose
name nobody can resolve, is work for this loop and for nobody who waits at the server's own.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

R = TypeVar("R")


class OwnLoop:
    """Runs coroutines for whoever waits on another loop. The thread is started with the first."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    async def run(self, coroutine: Coroutine[Any, Any, R]) -> R:
        """What a coroutine gives, or raises. Whoever is cancelled while waiting cancels it."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name=self._name, daemon=True)
            self._thread.start()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self._loop))

    async def close(self) -> None:
        """Ends what still runs, and the thread."""
        loop, self._loop = self._loop, None
        if loop is None or self._thread is None:
            return
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_end_others(), loop))
        loop.call_soon_threadsafe(loop.stop)
        await asyncio.to_thread(self._thread.join)
        loop.close()


async def _end_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
