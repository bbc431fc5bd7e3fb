"""A key that takes long rests, with all of its namespace, and the others are looked at meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import threading

import pytest

from dray.api.references import ObjectName
from dray.process.clock import VirtualClock
from dray.reconcile import Controller
from dray.reconcile.effort import LONGEST_REST, MANY, REST, Effort, Rests, beside_loop

LARGE, SMALL, OTHER = ObjectName("mallory", "large"), ObjectName("mallory", "small"), ObjectName("ann", "one")


class WorkingClock(VirtualClock):
    """Time passes in a step of work, too, when the work says so."""

    def work(self, seconds: float) -> None:
        """A step that takes so long."""
        self._now += seconds


async def test_a_namespace_has_a_share_of_the_time() -> None:
    clock = WorkingClock()
    seen: list[tuple[float, ObjectName]] = []
    start = clock.monotonic()

    async def reconcile(key: ObjectName) -> float | None:
        seen.append((clock.monotonic() - start, key))
        if key == LARGE:
            clock.work(0.5)
        return None

    controller = Controller("test", reconcile, clock)
    task = asyncio.create_task(controller.run())
    for key in (LARGE, SMALL, OTHER):
        controller.queue.add(key)
    await clock.advance(0.1)
    assert [key for _, key in seen] == [LARGE, OTHER]
    controller.queue.add(LARGE)
    await clock.advance(REST * 0.5 + 1)
    assert sorted(key for _, key in seen[2:]) == [LARGE, SMALL]
    assert seen[2][0] >= 0.5 + REST * 0.5
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def test_what_others_wait_for_counts_and_waiting_does_not() -> None:
    clock = WorkingClock()

    async def work() -> str:
        clock.work(0.25)
        await clock.sleep(10)
        clock.work(0.5)
        with contextlib.suppress(ValueError):
            await failing()
        return "done"

    async def failing() -> None:
        await asyncio.sleep(0)
        clock.work(0.125)
        raise ValueError

    effort = Effort(work(), clock)

    async def run() -> str:
        return await effort

    task = asyncio.create_task(run())
    await clock.advance(11)
    assert await task == "done"
    assert effort.seconds == pytest.approx(0.875)


async def test_work_that_is_called_off_ends() -> None:
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()

    async def run() -> None:
        await Effort(work(), VirtualClock())

    task = asyncio.create_task(run())
    await asyncio.sleep(0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert ended.is_set()


async def test_plans_about_many_are_made_beside_the_loop_and_count() -> None:
    clock = WorkingClock()

    def plan(seconds: float) -> int:
        clock.work(seconds)
        return threading.get_ident()

    async def work() -> tuple[int, int]:
        return await beside_loop(MANY - 1, plan, 0.5), await beside_loop(MANY, plan, 1.0)

    effort = Effort(work(), clock)
    few, many = await effort
    assert (few == threading.get_ident(), many == threading.get_ident()) == (True, False)
    assert effort.seconds == pytest.approx(1.5)


def test_a_process_that_stood_still_does_not_rest_for_long_and_little_is_free() -> None:
    rests = Rests(VirtualClock())
    rests.note(LARGE, 0.001)
    assert rests.left(LARGE) == 0
    rests.note(LARGE, 3600)
    assert rests.left(SMALL) == LONGEST_REST
    assert rests.left(OTHER) == 0
