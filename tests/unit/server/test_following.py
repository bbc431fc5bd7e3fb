"""Whoever looks after objects of the store goes on whatever happens, on the server's own clock, until it is closed."""

from __future__ import annotations

import asyncio

from dray.reconcile import VirtualClock
from dray.server.upkeep.following import RETRY_SECONDS, follow_until_closed
from dray.store import Closed, Slow, StorageError


async def test_it_begins_anew_at_once_after_missed_changes_later_after_a_failed_write_and_ends_with_the_store() -> None:
    clock = VirtualClock()
    happens = iter([Slow("pods", 1), Slow("pods", 2), StorageError("the disk is full"), Closed()])
    tries = 0

    async def follow() -> None:
        nonlocal tries
        tries += 1
        raise next(happens)

    task = asyncio.create_task(follow_until_closed(follow, clock))
    await clock.advance(RETRY_SECONDS / 2)
    assert (tries, task.done()) == (3, False)
    await clock.advance(RETRY_SECONDS / 2)
    assert (tries, task.done()) == (4, True)
    await task
