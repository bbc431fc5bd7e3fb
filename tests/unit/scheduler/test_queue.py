"""The scheduling queue under virtual time."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from dray.api.generated.core import Pod, PodSpec
from dray.api.meta import ObjectMeta
from dray.api.references import ObjectName
from dray.reconcile import VirtualClock
from dray.scheduler.queue import SchedulingQueue
from dray.scheduling.cause import Cause
from dray.scheduling.pod_info import PodInfo, read_pod


def info(name: str, priority: int = 0, namespace: str = "ns") -> PodInfo:
    return read_pod(Pod(metadata=ObjectMeta(name=name, namespace=namespace, uid=name), spec=PodSpec(priority=priority)))


@contextlib.asynccontextmanager
async def scheduling_queue() -> AsyncIterator[tuple[VirtualClock, SchedulingQueue]]:
    clock = VirtualClock()
    queue = SchedulingQueue(clock)
    yield clock, queue
    queue.close()


async def names(queue: SchedulingQueue, count: int) -> list[str]:
    return [(await queue.pop()).name.name for _ in range(count)]


async def test_higher_priority_first_then_older_first() -> None:
    async with scheduling_queue() as (clock, queue):
        for name, priority in (("old", 0), ("young", 0), ("important", 10)):
            queue.put(info(name, priority), changed=False)
            await clock.advance(1)
        assert await names(queue, 3) == ["important", "old", "young"]


@pytest.mark.req("4381-107", "4381-119", "4381-120")
async def test_a_refused_pod_waits_for_what_may_help() -> None:
    async with scheduling_queue() as (clock, queue):
        queue.put(info("a"), changed=False)
        await queue.pop()
        queue.refuse(ObjectName("ns", "a"), Cause.DEVICES)
        queue.happened(Cause.NODE)
        queue.happened(Cause.DEVICES, lambda pod: pod.name.name == "other")
        await clock.advance(60)
        assert queue.sizes()["active"] == 0
        queue.happened(Cause.DEVICES)
        assert await names(queue, 1) == ["a"]


@pytest.mark.req("4381-186")
async def test_a_flood_of_events_does_not_outrun_the_backoff() -> None:
    async with scheduling_queue() as (clock, queue):
        queue.put(info("a"), changed=False)
        attempts = 0
        for _ in range(600):
            queue.happened(Cause.DEVICES, at_once=False)
            if queue.sizes()["active"]:
                await queue.pop()
                attempts += 1
                queue.refuse(ObjectName("ns", "a"), Cause.DEVICES)
            await clock.advance(0.1)
        assert 6 <= attempts <= 12, "one minute of events ten times a second"


@pytest.mark.req("4381-108")
async def test_after_an_error_a_pod_is_tried_again_later_and_later() -> None:
    async with scheduling_queue() as (clock, queue):
        queue.put(info("a"), changed=False)
        start = clock.monotonic()
        moments = []
        for _ in range(4):
            await queue.pop()
            moments.append(round(clock.monotonic() - start))
            queue.refuse(ObjectName("ns", "a"), Cause.ERROR)
            while not queue.sizes()["active"]:
                await clock.advance(0.5)
        assert moments == [0, 1, 3, 7]


async def test_what_was_taken_back_after_an_error_does_not_end_the_pause() -> None:
    async with scheduling_queue() as (clock, queue):
        queue.put(info("a"), changed=False)
        await queue.pop()
        queue.refuse(ObjectName("ns", "a"), Cause.ERROR | Cause.CLAIM | Cause.DEVICES)
        queue.happened(Cause.DEVICES)
        queue.claim_changed(ObjectName("ns", "made-for-it"), ["a"], lambda _: True)
        assert queue.sizes()["active"] == 0
        await clock.advance(1.1)
        assert queue.sizes()["active"] == 1


async def test_pods_that_will_be_tried_again_soon_are_counted_apart() -> None:
    async with scheduling_queue() as (clock, queue):

        def counts() -> tuple[int, int, int]:
            sizes = queue.sizes()
            return sizes["active"], sizes["backoff"], sizes["unschedulable"]

        for name in ("error", "lacking", "hopeless"):
            queue.put(info(name), changed=False)
        assert await names(queue, 3) == ["error", "lacking", "hopeless"]
        queue.refuse(ObjectName("ns", "error"), Cause.ERROR)
        queue.refuse(ObjectName("ns", "lacking"), Cause.DEVICES)
        queue.refuse(ObjectName("ns", "hopeless"), Cause.NOTHING)
        assert counts() == (0, 1, 2)
        for _ in range(5):
            queue.happened(Cause.DEVICES, at_once=False)
        assert counts() == (0, 2, 1)
        assert len(queue._timers._moments) == 4, (
            "one for each, and one more for the pod that an event concerns, not five"
        )
        await clock.advance(1.1)
        assert counts() == (2, 0, 1)
        queue.remove(ObjectName("ns", "hopeless"))
        assert counts() == (2, 0, 0)


async def test_what_happens_during_a_decision_is_not_missed() -> None:
    async with scheduling_queue() as (clock, queue):
        queue.put(info("a"), changed=False)
        await queue.pop()
        queue.happened(Cause.CLAIM)
        queue.refuse(ObjectName("ns", "a"), Cause.CLAIM)
        await clock.advance(1.1)
        assert await names(queue, 1) == ["a"]


async def test_nobody_waits_longer_than_five_minutes() -> None:
    async with scheduling_queue() as (clock, queue):
        queue.put(info("a"), changed=False)
        await queue.pop()
        queue.refuse(ObjectName("ns", "a"), Cause.NOTHING)
        await clock.advance(299)
        assert queue.sizes()["active"] == 0
        await clock.advance(2)
        assert queue.sizes()["active"] == 1


async def test_a_pod_that_is_gone_is_forgotten() -> None:
    async with scheduling_queue() as (clock, queue):
        queue.put(info("a"), changed=False)
        queue.put(info("b"), changed=False)
        queue.remove(ObjectName("ns", "a"))
        assert await names(queue, 1) == ["b"]
        assert len(queue) == 1
        await clock.settle()


async def test_slow_pods_take_turns_with_the_others_whatever_their_priority_and_their_number() -> None:
    async with scheduling_queue() as (_, queue):
        slow = [info(f"slow-{number}", 100, "greedy") for number in range(3)] + [info("slow-other", 0, "modest")]
        for pod in slow:
            queue.put(pod, changed=False)
        for pod in [await queue.pop() for _ in slow]:
            queue.refuse(pod.name, Cause.SELECTORS, is_slow=True)
        queue.happened(Cause.SELECTORS)
        for number in range(3):
            queue.put(info(f"quick-{number}"), changed=False)
        found = []
        for turn in range(4):
            queue.begin_turn(slow_first=turn % 2 == 0)
            found.append(await names(queue, 2 if turn == 0 else 1))
        assert found == [["slow-0", "quick-0"], ["quick-1"], ["slow-other"], ["quick-2"]]
        queue.begin_turn(slow_first=False)
        assert await names(queue, 2) == ["slow-1", "slow-2"]  # nobody else is there


async def test_a_slow_pod_that_is_gone_or_no_longer_slow_is_not_among_the_slow_ones() -> None:
    async with scheduling_queue() as (_, queue):
        queue.put(info("a"), changed=False)
        queue.put(info("b"), changed=False)
        for _ in range(2):
            queue.refuse((await queue.pop()).name, Cause.SELECTORS, is_slow=True)
        queue.happened(Cause.SELECTORS)
        queue.remove(ObjectName("ns", "a"))
        assert await names(queue, 1) == ["b"]
        queue.refuse(ObjectName("ns", "b"), Cause.DEVICES)
        queue.happened(Cause.DEVICES)
        queue.begin_turn(slow_first=True)
        assert queue.sizes()["active"] == 1
        assert await names(queue, 1) == ["b"]


async def test_namespaces_take_turns_among_pods_that_are_equally_important() -> None:
    """Thousands of pods that are tried again and again hold up nobody who comes later (issue 14)."""
    clock = VirtualClock()
    queue = SchedulingQueue(clock)
    for number in range(1000):
        queue.put(info(f"old-{number:04}", namespace="crowd"), changed=False)
    await clock.advance(1)
    for name in ("a", "b"):
        queue.put(info(name, namespace="ml"), changed=False)
    queue.put(info("urgent", 5, "crowd"), changed=False)
    got = [(await queue.pop()).name for _ in range(6)]
    assert [f"{one.namespace}/{one.name}" for one in got] == [
        "crowd/urgent",
        "ml/a",
        "crowd/old-0000",
        "ml/b",
        "crowd/old-0001",
        "crowd/old-0002",
    ]


async def test_a_namespace_without_room_has_no_turn() -> None:
    queue = SchedulingQueue(VirtualClock())
    full = {"crowd"}
    queue.has_room = lambda namespace: namespace not in full
    for number in range(3):
        queue.put(info(f"p-{number}", namespace="crowd"), changed=False)
    queue.put(info("a", namespace="ml"), changed=False)
    assert (await queue.pop()).name.name == "a"
    waits = asyncio.ensure_future(queue.pop())
    await asyncio.sleep(0)
    queue.put(info("p-3", 5, "crowd"), changed=False)
    queue.room()
    await asyncio.sleep(0)
    assert not waits.done()
    full.clear()
    queue.room()
    assert (await waits).name.name == "p-3"
    assert [(await queue.pop()).name.name for _ in range(3)] == ["p-0", "p-1", "p-2"]


async def test_what_takes_long_is_put_aside_once_and_takes_turns_with_the_others() -> None:
    queue = SchedulingQueue(VirtualClock())
    for name in ("long", "a", "b"):
        queue.put(info(name), changed=False)
    assert (await queue.pop()).name.name == "long"
    assert queue.put_aside(ObjectName("ns", "long"))
    assert (await queue.pop()).name.name == "a"
    queue.begin_turn(slow_first=True)
    assert (await queue.pop()).name.name == "long"
    assert not queue.put_aside(ObjectName("ns", "long"))
    assert (await queue.pop()).name.name == "b"


async def test_of_a_group_that_is_complete_one_pod_is_tried_again() -> None:
    """All that wait are decided on with it."""
    async with scheduling_queue() as (_, queue):
        names_of = [ObjectName("ns", f"p-{number}") for number in range(100)]
        for name in names_of:
            queue.put(info(name.name), changed=False, waits_for=Cause.GROUP)
        queue.wake_one(names_of)
        assert queue.sizes()["active"] == 1
        assert len(queue.take(names_of[1:])) == 99
