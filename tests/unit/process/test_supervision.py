"""What fails by mistake starts again: later each time, soon again once it had worked, and never in silence."""

from __future__ import annotations

import asyncio

import pytest

from dray.process.clock import VirtualClock
from dray.process.supervision import RESTART, Supervisor


class Fragile:
    """Notes when it starts, and fails after so many seconds."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.starts: list[float] = []
        self.lives = 0.0

    async def run(self) -> None:
        self.starts.append(self.clock.monotonic())
        await self.clock.sleep(self.lives)
        raise ValueError("a mistake")

    @property
    def pauses(self) -> list[float]:
        return [round(later - earlier, 3) for earlier, later in zip(self.starts, self.starts[1:], strict=False)]


async def test_pauses_grow_and_begin_anew_once_it_had_worked(caplog: pytest.LogCaptureFixture) -> None:
    clock = VirtualClock()
    work, supervisor = Fragile(clock), Supervisor(clock)
    supervisor.start("work", work.run)
    await clock.advance(200)
    assert work.pauses[:7] == [1, 2, 4, 8, 16, 32, 60]
    assert supervisor.problems == {"work": "ValueError: a mistake"}
    assert all(record.exc_info for record in caplog.records if "work failed" in record.message)
    work.lives = RESTART.longest + 1
    await clock.advance(60)  # starts once more, and lives
    assert supervisor.problems == {}
    work.starts.clear()
    await clock.advance(2 * RESTART.longest + 10)
    assert work.pauses == [RESTART.longest + 1 + 1]
    await supervisor.stop()


async def test_what_ends_is_started_again_and_stop_ends_all() -> None:
    clock = VirtualClock()
    supervisor = Supervisor(clock)
    count = 0

    async def ends() -> None:
        nonlocal count
        count += 1

    supervisor.start("brief", ends)
    await clock.settle()
    assert supervisor.problems == {"brief": "it ended"}
    await clock.advance(1)
    assert count == 2
    await supervisor.stop()
    await clock.advance(100)
    assert count == 2
    assert len(asyncio.all_tasks()) == 1


async def test_who_fails_on_the_way_out_has_ended_all_the_same() -> None:
    clock = VirtualClock()
    supervisor = Supervisor(clock)

    async def fails_when_told_to_end() -> None:
        try:
            await clock.sleep(100)
        finally:
            raise OSError("connection refused")

    supervisor.start("stubborn", fails_when_told_to_end)
    await clock.settle()
    stopping = asyncio.create_task(supervisor.stop())
    await clock.settle()
    assert stopping.done()
    assert supervisor.problems == {}
