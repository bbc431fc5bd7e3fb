"""A mistake in a controller: the log shows where it is, and other keys are worked on all the same."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from dray.process.clock import VirtualClock
from dray.reconcile import Controller


async def test_a_mistake_is_logged_with_its_traceback_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    clock = VirtualClock()
    seen: list[str] = []
    reported: list[Exception] = []

    async def reconcile(key: str) -> float | None:
        seen.append(key)
        if key == "bad" and seen.count("bad") < 3:
            raise KeyError("no such thing")
        return None

    controller = Controller("test", reconcile, clock, report=lambda _name, _key, error: reported.append(error))
    task = asyncio.create_task(controller.run())
    controller.queue.add("bad")
    controller.queue.add("good")
    await clock.advance(5)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert seen == ["bad", "good", "bad", "bad"]
    assert reported == []  # it is no answer of the API
    shown = [record for record in caplog.records if record.exc_info]
    assert [record.getMessage() for record in shown] == ["test: a mistake while handling bad; it is tried again"] * 2
    assert shown[0].exc_info is not None
    assert shown[0].exc_info[0] is KeyError


@pytest.mark.parametrize("failure", [OSError("connection refused"), KeyError("no such thing"), None])
async def test_what_goes_wrong_on_the_way_out_keeps_nobody_at_work(failure: Exception | None) -> None:
    clock = VirtualClock()
    seen: list[str] = []

    async def reconcile(key: str) -> float | None:
        seen.append(key)
        try:
            await clock.sleep(100)
        except asyncio.CancelledError:
            if failure is not None:
                raise failure from None
        return None

    controller = Controller("test", reconcile, clock)
    task = asyncio.create_task(controller.run())
    controller.queue.add("one")
    controller.queue.add("two")
    await clock.settle()
    task.cancel()
    await clock.settle()
    assert task.cancelled()
    assert seen == ["one"]
