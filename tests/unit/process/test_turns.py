"""Whose input or output is next: owners of connections take turns, and a turn of the loop has a few pieces."""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import pairwise

from dray.process.http.turns import AT_ONCE, DIRECTLY, SharedTurns, Turns


async def test_what_comes_alone_is_looked_at_as_it_comes() -> None:
    turns = Turns(asyncio.get_running_loop())
    for _ in range(3 * DIRECTLY):
        assert turns.enter()
        await asyncio.sleep(0)


async def test_owners_take_turns_however_much_each_has_brought() -> None:
    turns = Turns(asyncio.get_running_loop())
    order: list[str] = []
    for owner, count in (("many", 100), ("few", 3), ("one", 1)):
        for _ in range(count):
            turns.wait(owner, partial(order.append, owner))
    while len(order) < 104:
        before = len(order)
        await asyncio.sleep(0)
        assert len(order) - before <= AT_ONCE
    assert order[:7] == ["many", "few", "one", "many", "few", "many", "few"]
    assert order[7:] == ["many"] * 97


async def test_what_is_large_counts_as_many_pieces() -> None:
    turns = SharedTurns(10, 1000)
    order: list[str] = []

    async def write(owner: str, size: int) -> None:
        await turns.next(owner, size)
        order.append(owner)

    async with asyncio.TaskGroup() as tasks:
        for owner, size in (("large", 20_000), ("large", 20_000), *[("small", 10)] * 15, ("large", 20_000)):
            tasks.create_task(write(owner, size))
        found = []
        while len(order) < 18:
            await asyncio.sleep(0)
            found.append(len(order))
    steps = [after - before for before, after in pairwise([0, *found]) if after > before]
    assert steps == [1, 1, 2, 10, 4]
    assert order == ["large", "large", "small", "large", *["small"] * 14]


async def test_nobody_overtakes_those_who_wait() -> None:
    turns = Turns(asyncio.get_running_loop())
    order: list[str] = []
    for _ in range(AT_ONCE + 1):
        turns.wait("many", partial(order.append, "many"))
    await asyncio.sleep(0)
    assert len(order) == AT_ONCE
    assert not turns.enter()
    await asyncio.sleep(0)
    assert turns.enter()


async def test_who_waits_again_while_it_is_looked_at_has_its_turn_in_the_next_one() -> None:
    turns = Turns(asyncio.get_running_loop())
    order: list[str] = []

    def go_on(owner: str, left: int) -> None:
        order.append(owner)
        if left:
            turns.wait(owner, partial(go_on, owner, left - 1))

    turns.wait("a", partial(go_on, "a", 3))
    turns.wait("b", partial(go_on, "b", 1))
    found = []
    while len(order) < 6:
        await asyncio.sleep(0)
        found.append("".join(order))
    assert found == ["ab", "abab", "ababa", "ababaa"]
