"""The metrics of a work queue, counted again by a twin that keeps the history of each key."""

from __future__ import annotations

import asyncio
from typing import Literal

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from dray.controllers.queue_metrics import QueueMetrics
from dray.reconcile import VirtualClock, WorkQueue

Step = tuple[Literal["add", "get", "done", "wait"], str]
_steps = st.lists(st.tuples(st.sampled_from(["add", "get", "done", "wait"]), st.sampled_from("abc")), max_size=30)


def number(registry: CollectorRegistry, name: str) -> float:
    found = registry.get_sample_value(name, {"name": "q"})
    assert found is not None
    return found


async def play(steps: list[Step]) -> None:
    clock, registry = VirtualClock(), CollectorRegistry()
    queue: WorkQueue[str] = WorkQueue("q", clock)
    QueueMetrics(registry).add(queue)
    waiting: list[str] = []
    since: dict[str, float] = {}
    again: set[str] = set()
    adds = 0
    for what, key in steps:
        if what == "wait":
            await clock.advance(1)
        elif what == "add":
            queue.add(key)
            adds += 1
            if key in since:
                again.add(key)
            elif key not in waiting:
                waiting.append(key)
        elif what == "get" and waiting:
            assert await queue.get() == waiting[0]
            since[waiting.pop(0)] = clock.monotonic()
        elif what == "done" and key in since:
            queue.done(key)
            del since[key]
            if key in again:
                again.discard(key)
                waiting.append(key)
                adds += 1
        taken = [clock.monotonic() - begun for begun in since.values()]
        assert number(registry, "workqueue_depth") == len(waiting)
        assert number(registry, "workqueue_processing") == len(since)
        assert number(registry, "workqueue_adds_total") == adds
        assert number(registry, "workqueue_unfinished_work_seconds") == sum(taken)
        assert number(registry, "workqueue_longest_running_processor_seconds") == max(taken, default=0)
    queue.close()


@given(_steps)
def test_every_number_of_a_queue_is_what_its_history_says(steps: list[Step]) -> None:
    asyncio.run(play(steps))
