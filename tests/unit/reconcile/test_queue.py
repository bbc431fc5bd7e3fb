"""The work queue under virtual time."""

import asyncio
import time

import pytest

from dray.api.references import ObjectName
from dray.api.status import ApiError
from dray.reconcile import Controller, VirtualClock, WorkQueue
from dray.reconcile.controller import SHARES
from dray.reconcile.fair_turns import KEYS_PER_TURN


async def test_a_key_is_handed_out_once_however_often_it_is_added() -> None:
    clock = VirtualClock()
    queue: WorkQueue[str] = WorkQueue("test", clock)
    for key in ("a", "b", "a", "a"):
        queue.add(key)
    assert [await queue.get(), await queue.get()] == ["a", "b"]
    assert len(queue) == 0


async def test_a_key_added_while_it_is_worked_on_comes_again() -> None:
    clock = VirtualClock()
    queue: WorkQueue[str] = WorkQueue("test", clock)
    queue.add("a")
    key = await queue.get()
    queue.add("a")
    assert len(queue) == 0
    queue.done(key)
    assert await queue.get() == "a"


async def test_later_means_later_and_the_earliest_time_counts() -> None:
    clock = VirtualClock()
    queue: WorkQueue[str] = WorkQueue("test", clock)
    queue.add_after("slow", 60)
    queue.add_after("fast", 5)
    queue.add_after("fast", 30)
    await clock.advance(4.9)
    assert len(queue) == 0
    await clock.advance(0.2)
    assert await queue.get() == "fast"
    queue.done("fast")
    await clock.advance(30)
    assert len(queue) == 0, "the later time of `fast` was replaced by the earlier one"
    await clock.advance(30)
    assert await queue.get() == "slow"
    queue.close()


async def test_retries_wait_longer_and_longer_until_forgotten() -> None:
    clock = VirtualClock()
    queue: WorkQueue[str] = WorkQueue("test", clock)
    assert [queue.retry("a") for _ in range(4)] == [0.005, 0.01, 0.02, 0.04]
    for _ in range(30):
        longest = queue.retry("a")
    assert longest == 60.0
    queue.forget("a")
    assert queue.retry("a") == 0.005
    queue.close()


async def test_a_controller_tries_again_after_failures_and_looks_again_when_asked() -> None:
    clock = VirtualClock()
    seen: list[float] = []
    heard: list[str] = []

    async def reconcile(_key: str) -> float | None:
        seen.append(clock.monotonic())
        if len(seen) < 3:
            raise ApiError(503, "ServiceUnavailable", "not now")
        return 10.0 if len(seen) == 3 else None

    controller = Controller("test", reconcile, clock, report=lambda name, _key, error: heard.append(f"{name}: {error}"))
    task = asyncio.get_running_loop().create_task(controller.run())
    start = clock.monotonic()
    controller.queue.add("a")
    await clock.advance(60)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert [round(moment - start, 3) for moment in seen] == [0.0, 0.005, 0.015, 10.015]
    assert heard == ["test: not now"] * 2


async def test_a_jump_of_the_wall_clock_wakes_nobody() -> None:
    clock = VirtualClock()
    queue: WorkQueue[str] = WorkQueue("test", clock)
    queue.add_after("a", 5)
    before = clock.now()
    clock.jump(3600)
    await clock.settle()
    assert clock.now() - before == 3600
    assert len(queue) == 0
    await clock.advance(5)
    assert len(queue) == 1
    queue.close()


async def test_what_keeps_failing_is_not_hurried_by_what_happens() -> None:
    """Whoever fails and writes why it failed must not wake itself by that write, hundreds of times a second."""
    clock = VirtualClock()
    queue: WorkQueue[str] = WorkQueue("q", clock)
    attempts = 0

    async def work() -> None:
        nonlocal attempts
        while True:
            key = await queue.get()
            attempts += 1
            queue.retry(key)
            queue.add(key)  # its own write comes back as an event
            queue.done(key)

    task = asyncio.create_task(work())
    queue.add("a")
    await clock.advance(100)
    task.cancel()
    queue.close()
    assert attempts < 120


async def test_who_was_stopped_and_goes_on_has_forgotten_nothing() -> None:
    """As a replica does that lost its lease, and has it again."""
    clock = VirtualClock()
    done: list[str] = []
    is_slow = True

    async def reconcile(key: str) -> float | None:
        if is_slow:
            await asyncio.Event().wait()
        done.append(key)
        return None

    controller = Controller("test", reconcile, clock)
    for stopped in (True, False):
        is_slow = stopped
        task = asyncio.create_task(controller.run())
        if stopped:
            controller.queue.add("under way")
            controller.queue.add("waits")
            controller.queue.add_after("later", 60)
        await clock.advance(1 if stopped else 61)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert sorted(done) == ["later", "under way", "waits"]


async def test_who_is_stopped_before_its_turn_has_forgotten_nothing() -> None:
    clock = VirtualClock()
    done: list[int] = []

    async def reconcile(key: int) -> float | None:
        done.append(key)
        return None

    controller = Controller("test", reconcile, clock, workers=3 * KEYS_PER_TURN)
    for key in range(3 * KEYS_PER_TURN):
        controller.queue.add(key)
    task = asyncio.create_task(controller.run())
    while not done:
        await asyncio.sleep(0)
    assert len(done) <= KEYS_PER_TURN
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    task = asyncio.create_task(controller.run())
    await clock.advance(1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert sorted(done) == list(range(3 * KEYS_PER_TURN))


async def test_a_key_of_many_costs_what_one_of_few_does() -> None:
    """The first key of a plain dict is searched for among those that were taken out before it."""

    async def seconds_of_each(count: int) -> float:
        queue: WorkQueue[int] = WorkQueue("test", VirtualClock())
        for key in range(count):
            queue.add(key)
        began = time.thread_time()
        for _ in range(count):
            queue.done(await queue.get())
        return (time.thread_time() - began) / count

    few, many = min([await seconds_of_each(500) for _ in range(20)]), await seconds_of_each(40_000)
    assert many < 8 * few, "40,000 keys in order cost 20 times as much and more if each is searched for"


async def test_namespaces_take_turns_and_one_has_so_many_keys_worked_on_at_most() -> None:
    clock = VirtualClock()
    queue: WorkQueue[ObjectName] = WorkQueue("q", clock, most=2)
    for number in range(1000):
        queue.add(ObjectName("crowd", str(number)))
    queue.add(ObjectName("alone", "0"))
    got = [await queue.get() for _ in range(3)]
    assert [key.namespace for key in got] == ["crowd", "alone", "crowd"]
    waits = asyncio.ensure_future(queue.get())
    await clock.settle()
    assert not waits.done(), "two keys of the namespace are being worked on"
    queue.done(got[0])
    assert await waits == ObjectName("crowd", "2")
    assert (queue.processing, len(queue)) == (3, 997)


@pytest.mark.parametrize("workers", [1, 4])
async def test_namespaces_whose_writes_hang_hold_up_no_other(workers: int) -> None:
    """A webhook may take half a minute for each pod of a namespace, for ever (issue 14)."""
    clock = VirtualClock()
    seen: list[str] = []

    async def reconcile(key: ObjectName) -> None:
        seen.append(key.namespace)
        if key.namespace.startswith("hangs"):
            await clock.sleep(1_000_000)

    controller = Controller("test", reconcile, clock, workers=workers)
    task = asyncio.get_running_loop().create_task(controller.run())
    await clock.settle()
    for number in range(SHARES - 1):
        for name in range(3 * workers):
            controller.queue.add(ObjectName(f"hangs-{number}", str(name)))
    await clock.settle()
    assert len(seen) == controller.queue.processing == (SHARES - 1) * workers
    controller.queue.add(ObjectName("alone", "0"))
    await clock.settle()
    assert seen[-1] == "alone"
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert controller.queue.processing == 0


async def test_keys_without_a_namespace_are_looked_at_by_as_many_as_there_are_workers() -> None:
    """One worker is one at a time, for what must not be done side by side."""
    clock = VirtualClock()
    busy: list[str] = []

    async def reconcile(key: str) -> None:
        busy.append(key)
        await clock.sleep(1)
        assert busy == [key]
        busy.remove(key)

    controller = Controller("test", reconcile, clock)
    task = asyncio.get_running_loop().create_task(controller.run())
    for key in "abcdef":
        controller.queue.add(key)
    await clock.advance(10)
    assert not busy
    assert controller.queue.idle
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
