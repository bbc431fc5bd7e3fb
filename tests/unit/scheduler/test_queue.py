"""The scheduling queue under virtual time."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from dray.api.generated.core import Pod, PodSpec
from dray.api.meta import ObjectMeta
from dray.reconcile import VirtualClock
from dray.scheduler.pod_info import PodInfo, read_pod
from dray.scheduler.queue import Cause, SchedulingQueue


def info(name: str, priority: int = 0) -> PodInfo:
    return read_pod(Pod(metadata=ObjectMeta(name=name, namespace="ns", uid=name), spec=PodSpec(priority=priority)))


def simulate(scenario: Callable[[VirtualClock, SchedulingQueue], Awaitable[None]]) -> None:
    async def run() -> None:
        clock = VirtualClock()
        queue = SchedulingQueue(clock)
        await scenario(clock, queue)
        queue.close()

    asyncio.run(run())


async def names(queue: SchedulingQueue, count: int) -> list[str]:
    return [(await queue.pop()).key[1] for _ in range(count)]


def test_higher_priority_first_then_older_first() -> None:
    async def scenario(clock: VirtualClock, queue: SchedulingQueue) -> None:
        for name, priority in (("old", 0), ("young", 0), ("important", 10)):
            queue.put(info(name, priority), changed=False)
            await clock.advance(1)
        assert await names(queue, 3) == ["important", "old", "young"]

    simulate(scenario)


@pytest.mark.req("4381-107", "4381-119", "4381-120")
def test_a_refused_pod_waits_for_what_may_help() -> None:
    async def scenario(clock: VirtualClock, queue: SchedulingQueue) -> None:
        queue.put(info("a"), changed=False)
        await queue.pop()
        queue.refuse(("ns", "a"), Cause.DEVICES)
        queue.happened(Cause.NODE)
        queue.happened(Cause.DEVICES, lambda pod: pod.key[1] == "other")
        await clock.advance(60)
        assert queue.sizes()["active"] == 0
        queue.happened(Cause.DEVICES)
        assert await names(queue, 1) == ["a"]

    simulate(scenario)


@pytest.mark.req("4381-186")
def test_a_flood_of_events_does_not_outrun_the_backoff() -> None:
    async def scenario(clock: VirtualClock, queue: SchedulingQueue) -> None:
        queue.put(info("a"), changed=False)
        attempts = 0
        for _ in range(600):
            queue.happened(Cause.DEVICES, at_once=False)
            if queue.sizes()["active"]:
                await queue.pop()
                attempts += 1
                queue.refuse(("ns", "a"), Cause.DEVICES)
            await clock.advance(0.1)
        assert 6 <= attempts <= 12, "one minute of events ten times a second"

    simulate(scenario)


@pytest.mark.req("4381-108")
def test_after_an_error_a_pod_is_tried_again_later_and_later() -> None:
    async def scenario(clock: VirtualClock, queue: SchedulingQueue) -> None:
        queue.put(info("a"), changed=False)
        start = clock.monotonic()
        moments = []
        for _ in range(4):
            await queue.pop()
            moments.append(round(clock.monotonic() - start))
            queue.refuse(("ns", "a"), Cause.ERROR)
            while not queue.sizes()["active"]:
                await clock.advance(0.5)
        assert moments == [0, 1, 3, 7]

    simulate(scenario)


def test_what_happens_during_a_decision_is_not_missed() -> None:
    async def scenario(clock: VirtualClock, queue: SchedulingQueue) -> None:
        queue.put(info("a"), changed=False)
        await queue.pop()
        queue.happened(Cause.CLAIM)
        queue.refuse(("ns", "a"), Cause.CLAIM)
        await clock.advance(1.1)
        assert await names(queue, 1) == ["a"]

    simulate(scenario)


def test_nobody_waits_longer_than_five_minutes() -> None:
    async def scenario(clock: VirtualClock, queue: SchedulingQueue) -> None:
        queue.put(info("a"), changed=False)
        await queue.pop()
        queue.refuse(("ns", "a"), Cause.NOTHING)
        await clock.advance(299)
        assert queue.sizes()["active"] == 0
        await clock.advance(2)
        assert queue.sizes()["active"] == 1

    simulate(scenario)


def test_a_pod_that_is_gone_is_forgotten() -> None:
    async def scenario(clock: VirtualClock, queue: SchedulingQueue) -> None:
        queue.put(info("a"), changed=False)
        queue.put(info("b"), changed=False)
        queue.remove(("ns", "a"))
        assert await names(queue, 1) == ["b"]
        assert len(queue) == 1
        await clock.settle()

    simulate(scenario)
