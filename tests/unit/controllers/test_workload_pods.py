"""Writes for one workload leave turns of the loop to others."""

from __future__ import annotations

import asyncio
import itertools

from dray.controllers.workload_pods import MANY_WAITING, STARTED_AT_ONCE, pause_before_more, side_by_side


async def test_few_writes_begin_in_one_turn_and_all_are_done() -> None:
    begun: list[int] = []
    turns: list[int] = []

    async def write(number: int) -> int:
        begun.append(number)
        await asyncio.sleep(0.001)
        return number

    async def watch() -> None:
        while True:
            turns.append(len(begun))
            await asyncio.sleep(0)

    watching = asyncio.create_task(watch())
    assert await side_by_side(write(number) for number in range(500)) == list(range(500))
    watching.cancel()
    assert max(after - before for before, after in itertools.pairwise(turns)) <= STARTED_AT_ONCE


def test_a_workload_waits_the_longer_the_more_of_its_pods_do() -> None:
    assert pause_before_more(MANY_WAITING) == 0
    pauses = [pause_before_more(count * MANY_WAITING) for count in (2, 4, 8)]
    assert pauses == [0.4, 1.6, 6.4]
