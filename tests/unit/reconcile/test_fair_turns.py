"""However many keys wait for however many workers, others get their turns of the loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter

from dray.reconcile import Controller, VirtualClock, WorkQueue
from dray.reconcile.fair_turns import KEYS_PER_TURN, FairTurns
from dray.reconcile.timers import DUE_AT_ONCE

KEYS = 1000


class Ticks:
    """Counts the turns of the running loop."""

    def __init__(self) -> None:
        self.number = 0
        self._loop = asyncio.get_running_loop()
        self._tick()

    def _tick(self) -> None:
        self.number += 1
        self._handle = self._loop.call_soon(self._tick)

    def stop(self) -> None:
        self._handle.cancel()


async def test_all_controllers_together_begin_with_few_keys_in_a_turn() -> None:
    ticks, clock = Ticks(), VirtualClock()
    begun: Counter[int] = Counter()
    seen: Counter[tuple[str, str]] = Counter()

    def made(name: str) -> Controller[str]:
        async def reconcile(key: str) -> float | None:
            begun[ticks.number] += 1
            seen[name, key] += 1
            return None

        return Controller(name, reconcile, clock, workers=50)

    controllers = [made("claims"), made("garbage"), made("quotas")]
    tasks = [asyncio.create_task(controller.run()) for controller in controllers]
    for number in range(KEYS):
        for controller in controllers:
            controller.queue.add(f"key-{number}")
    while seen.total() < len(controllers) * KEYS:
        await asyncio.sleep(0)
    ticks.stop()
    for task in tasks:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    assert set(seen.values()) == {1}
    assert max(begun.values()) <= 2 * KEYS_PER_TURN  # some come before the turn's own count, some after
    assert len(begun) >= len(controllers) * KEYS // KEYS_PER_TURN // 2


async def test_who_is_cancelled_while_waiting_takes_no_place() -> None:
    turns = FairTurns(asyncio.get_running_loop())
    tasks = [asyncio.create_task(turns.take()) for _ in range(4 * KEYS_PER_TURN)]
    await asyncio.sleep(0)
    for task in tasks[KEYS_PER_TURN : 3 * KEYS_PER_TURN]:
        task.cancel()
    await asyncio.gather(*tasks[:KEYS_PER_TURN], *tasks[3 * KEYS_PER_TURN :])
    for _ in range(3):
        await asyncio.sleep(0)
    assert not turns._is_counting, "when nobody comes, nothing runs"


async def test_keys_whose_time_comes_at_once_are_added_in_several_turns() -> None:
    clock = VirtualClock()
    queue: WorkQueue[str] = WorkQueue("test", clock)
    for number in range(KEYS):
        queue.put_off(f"key-{number}", 5)
    ticks = Ticks()
    added: Counter[int] = Counter()
    add_now = queue._add_now

    def counted(key: str) -> None:
        added[ticks.number] += 1
        add_now(key)

    queue._add_now = counted  # type: ignore[method-assign]
    await clock.advance(5)
    while len(queue) < KEYS:
        await asyncio.sleep(0)
    ticks.stop()
    queue.close()
    assert max(added.values()) <= DUE_AT_ONCE
