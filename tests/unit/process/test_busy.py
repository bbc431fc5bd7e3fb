"""What is waited for does not count as work."""

from __future__ import annotations

import asyncio

import pytest

from dray.process.busy import Stopwatch, counted


class Clock:
    """Goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("dray.process.busy.perf_counter", made)
    return made


async def test_steps_count_and_waiting_does_not(clock: Clock) -> None:
    answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def work() -> str:
        clock.now += 1
        text = await answer
        clock.now += 2
        await asyncio.sleep(0)
        clock.now += 4
        return text

    watch = Stopwatch()
    task = asyncio.ensure_future(counted(work(), watch))
    await asyncio.sleep(0)
    clock.now += 1000
    answer.set_result("done")
    assert await task == "done"
    assert watch.seconds == 7


async def test_who_is_cancelled_hears_of_it(clock: Clock) -> None:
    heard = []

    async def work() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            clock.now += 1
            heard.append("cancelled")
            await asyncio.sleep(0)
            clock.now += 1
            raise

    watch = Stopwatch()
    task = asyncio.ensure_future(counted(work(), watch))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (heard, watch.seconds) == (["cancelled"], 2)


async def test_mistakes_are_told(clock: Clock) -> None:
    async def work() -> None:
        clock.now += 3
        raise ValueError("a mistake")

    watch = Stopwatch()
    with pytest.raises(ValueError, match="a mistake"):
        await counted(work(), watch)
    assert watch.seconds == 3
