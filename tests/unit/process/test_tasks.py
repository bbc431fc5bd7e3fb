"""What runs together ends together."""

from __future__ import annotations

import asyncio

import pytest

from dray.process.tasks import run_together, with_turns


async def test_one_that_fails_ends_the_others_and_says_why() -> None:
    ended = asyncio.Event()

    async def waits() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.set()

    async def fails() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await run_together(waits(), fails())
    assert ended.is_set()


async def test_cancelling_ends_all_before_it_returns() -> None:
    ended: list[int] = []

    async def waits(number: int) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await asyncio.sleep(0)
            ended.append(number)

    task = asyncio.create_task(run_together(waits(1), waits(2)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(ended) == [1, 2]


async def test_others_have_a_turn_after_so_many() -> None:
    seen: list[int] = []

    async def other() -> None:
        seen.append(-1)

    waiting = asyncio.create_task(other())
    async for number in with_turns(range(4), 3):
        seen.append(number)
        if number == 1:
            continue
    await waiting
    assert seen == [0, 1, 2, -1, 3]
