"""Whoever of the server looks after some objects follows the store for as long as it is open."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from dray.process.clock import Clock
from dray.store import Closed, Slow, StorageError

RETRY_SECONDS: Final = 5.0


async def follow_until_closed(follow: Callable[[], Awaitable[None]], clock: Clock) -> None:
    """Has somebody look at everything and then at what changes, and begin anew if changes were missed or a write
    failed; ends when the store is closed."""
    while True:
        try:
            await follow()
        except Closed:
            return
        except Slow:
            continue
        except StorageError:  # a full disk, say
            await clock.sleep(RETRY_SECONDS)
