"""Questions to etcd that somebody else's end interrupts: nobody ends with them, and the next question is asked."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from dray.server.etcd_instance import layout
from dray.store.errors import Closed
from dray.store.etcd.feed import Feed
from dray.store.etcd.rounds import Rounds
from dray.store.watch import Progress
from patience import PATIENCE


class GivenUp:
    """A stream that somebody ends while another writes to it."""

    async def write(self, _request: Any) -> None:
        raise asyncio.CancelledError


async def test_who_asks_a_stream_that_is_given_up_goes_on() -> None:
    feed = Feed(cast(Any, None), cast(Any, None), layout("/registry"), (3, 5, 9))
    feed._call = GivenUp()
    await asyncio.create_task(feed.nudge())


async def test_a_round_that_ends_by_mistake_is_not_the_last() -> None:
    failures: list[BaseException] = [asyncio.CancelledError(), ValueError("a mistake")]

    async def ask() -> int:
        if failures:
            raise failures.pop()
        return 7

    async def nudge() -> None:
        return

    rounds = Rounds(ask, nudge, Progress(7))
    tasks: list[asyncio.Task[None]] = []
    for _ in range(2):
        with pytest.raises(Closed):
            await asyncio.wait_for(_joined(rounds, tasks), PATIENCE)
    assert await asyncio.wait_for(rounds.join(), PATIENCE) == 7
    await asyncio.gather(*tasks, return_exceptions=True)


async def _joined(rounds: Rounds, tasks: list[asyncio.Task[None]]) -> int:
    joining = asyncio.ensure_future(rounds.join())
    await asyncio.sleep(0)
    assert rounds._task is not None
    tasks.append(rounds._task)
    return await joining
