"""Whose turn it is: callers with few requests do not wait for callers with many."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest

from dray.api.registry import by_kind
from dray.server.errors import ApiError
from dray.server.fairness import (
    MOST_FIRST,
    MOST_RUNNING,
    MOST_WAITING,
    TURN_SECONDS,
    Fairness,
    is_vital,
    may_be_refused,
)
from dray.server.routes import Route
from dray.server.security.identity import authenticated

COST = TURN_SECONDS / 4


class Loop:
    """Turns of a loop, made by hand."""

    def __init__(self) -> None:
        self.fairness = Fairness(self._call_soon)
        self.order: list[str] = []
        self.tasks: list[asyncio.Task[None]] = []
        self._soon: list[object] = []

    def _call_soon(self, callback: object) -> None:
        self._soon.append(callback)

    def come(self, user: str, kind: str = "pods", *, vital: bool = False) -> None:
        self.tasks.append(asyncio.create_task(self._request(user, kind, vital)))

    async def _request(self, user: str, kind: str, vital: bool) -> None:
        flow = self.fairness.flow(user)
        flow.estimate = COST
        if not self.fairness.try_enter(flow):
            await self.fairness.wait(flow, kind, vital=vital)
        self.order.append(f"{user}/{kind}")
        self.fairness.leave(flow, COST)

    async def turn(self) -> list[str]:
        """One turn: who was answered in it."""
        before = len(self.order)
        soon, self._soon = self._soon, []
        for callback in soon:
            callback()  # type: ignore[operator]
        for _ in range(3):
            await asyncio.sleep(0)
        return self.order[before:]


async def test_a_lone_caller_is_not_held_up() -> None:
    loop = Loop()
    for _ in range(3):
        loop.come("a")
    assert await loop.turn() == ["a/pods"] * 3
    assert loop.fairness.waiting == 0


async def test_one_turn_starts_only_what_it_has_time_for() -> None:
    loop = Loop()
    for _ in range(20):
        loop.come("a")
    answered = [len(await loop.turn()) for _ in range(6)]
    assert max(answered) <= 8
    assert sum(answered) == 20


async def test_who_asks_little_goes_before_who_asks_much() -> None:
    loop = Loop()
    for _ in range(100):
        loop.come("greedy")
    await loop.turn()
    loop.come("modest")
    await asyncio.sleep(0)
    await loop.turn()
    assert "modest/pods" in loop.order
    assert loop.fairness.waiting > 80
    while loop.fairness.waiting:
        await loop.turn()


async def test_kinds_of_one_caller_take_turns() -> None:
    loop = Loop()
    for _ in range(30):
        loop.come("a", "pods")
    loop.come("a", "claims")
    await loop.turn()
    await loop.turn()
    assert "a/claims" in loop.order[:14]
    while loop.fairness.waiting:
        await loop.turn()


async def test_what_is_vital_goes_first() -> None:
    loop = Loop()
    for user in "abcdef":
        for _ in range(20):
            loop.come(user)
    await loop.turn()
    loop.come("node", "leases", vital=True)
    await asyncio.sleep(0)
    assert (await loop.turn())[0] == "node/leases"
    while loop.fairness.waiting:
        await loop.turn()


async def test_who_floods_with_what_is_vital_takes_no_more_than_its_share() -> None:
    """A node, or a component gone wild, that renews a lease without end: others go on, and so do other nodes."""
    loop = Loop()
    for _ in range(300):
        loop.come("node-1", "leases", vital=True)
    await loop.turn()
    for _ in range(20):
        loop.come("ann")
    loop.come("node-2", "leases", vital=True)
    await asyncio.sleep(0)
    first = await loop.turn()
    assert "node-2/leases" in first
    assert "ann/pods" in first
    assert first.count("node-1/leases") <= MOST_FIRST + 1
    for _ in range(40):
        await loop.turn()
    assert loop.order.count("ann/pods") == 20
    while loop.fairness.waiting:
        await loop.turn()
    assert loop.order.count("node-1/leases") == 300  # and nothing is refused


@pytest.mark.parametrize("seed", range(20))
async def test_shares_are_equal_whatever_the_numbers(seed: int) -> None:
    """While several callers wait, none gets more than one turn's worth ahead of another."""
    chance = random.Random(seed)
    loop = Loop()
    users = {f"user-{number}": chance.randrange(20, 200) for number in range(chance.randrange(2, 8))}
    for user in chance.sample([user for user, many in users.items() for _ in range(many)], sum(users.values())):
        loop.come(user)
    await loop.turn()
    loop.order.clear()
    while all(flow.waiting for name, flow in loop.fairness._flows.items() if name in users):
        await loop.turn()
    counts = Counter(loop.order)
    assert max(counts.values()) - min(counts.values()) <= 12
    while loop.fairness.waiting:
        await loop.turn()


async def test_too_many_of_one_are_told_to_come_again() -> None:
    fairness = Fairness(lambda _callback: None)
    flow = fairness.flow("greedy")
    while fairness.try_enter(flow):
        pass
    waiting = [asyncio.create_task(fairness.wait(flow, "pods", vital=False)) for _ in range(MOST_WAITING)]
    await asyncio.sleep(0)
    with pytest.raises(ApiError) as refused:
        await fairness.wait(flow, "pods", vital=False)
    assert refused.value.code == 429
    assert refused.value.status.details is not None
    assert refused.value.status.details.retry_after_seconds == 1
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_only_so_many_of_one_run_at_once() -> None:
    turns: list[object] = []
    fairness = Fairness(turns.append)
    flow = fairness.flow("a")
    flow.estimate = 0.0
    for _ in range(MOST_RUNNING):
        assert fairness.try_enter(flow)
    assert not fairness.try_enter(flow)
    waiter = asyncio.create_task(fairness.wait(flow, "pods", vital=False))
    await asyncio.sleep(0)
    other = fairness.flow("b")
    other_waiter = asyncio.create_task(fairness.wait(other, "pods", vital=False))
    await asyncio.sleep(0)
    while turns:
        turns.pop(0)()  # type: ignore[operator]
        await asyncio.sleep(0)
    assert other_waiter.done()
    assert not waiter.done()
    fairness.leave(flow, 0.0)
    while turns:
        turns.pop(0)()  # type: ignore[operator]
    await waiter


async def test_who_goes_away_while_waiting_leaves_no_trace() -> None:
    loop = Loop()
    for _ in range(30):
        loop.come("a")
    await loop.turn()
    for task in loop.tasks:
        task.cancel()
    await asyncio.gather(*loop.tasks, return_exceptions=True)
    while loop.fairness.waiting:
        await loop.turn()
    assert loop.fairness.flow("a").running == 0


def test_what_the_cluster_lives_on() -> None:
    lease = Route("update", by_kind("coordination.k8s.io/v1", "Lease"), "v1", "kube-node-lease", "node-1")
    pods = Route("list", by_kind("v1", "Pod"), "v1")
    node = authenticated("system:node:node-1", ("system:nodes",))
    assert is_vital(node, lease)
    assert not is_vital(node, pods)
    assert is_vital(authenticated("system:kube-scheduler"), pods)
    assert not is_vital(authenticated("jane"), lease)
    assert not may_be_refused(authenticated("root", ("system:masters",)), pods)
    assert not may_be_refused(authenticated("system:anonymous"), None)
    assert may_be_refused(authenticated("jane"), pods)


async def test_who_waits_for_somebody_else_takes_up_nothing() -> None:
    fairness = Fairness()
    flow = fairness.flow("u")
    flow.estimate = 0.0
    for _ in range(MOST_RUNNING):
        assert fairness.try_enter(flow)
    assert not fairness.try_enter(flow)
    flow.step_out()
    assert fairness.try_enter(flow)
    flow.step_in()
    assert flow.running == MOST_RUNNING + 1
