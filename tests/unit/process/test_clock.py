"""Times as the API writes them, and time that tests move on."""

import asyncio

import pytest

from dray.process.clock import VirtualClock, as_time


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "1970-01-01T00:00:00Z"),
        (1_750_000_000.999, "2025-06-15T15:06:40Z"),
        (-0.5, "1969-12-31T23:59:59Z"),
    ],
)
def test_a_time_is_cut_to_the_second(seconds: float, text: str) -> None:
    assert as_time(seconds) == text


async def test_time_stands_still_while_somebody_is_about_to_go_on() -> None:
    """Watchers of the store are told a moment apart by the loop's own clock, and some things take many turns."""
    clock = VirtualClock()
    heard: list[float] = []
    loop = asyncio.get_running_loop()

    async def takes_many_turns() -> None:
        for _ in range(100):
            await asyncio.sleep(0)
        heard.append(clock.monotonic())

    loop.call_later(0.003, lambda: heard.append(clock.monotonic()))
    far = loop.call_later(60, pytest.fail)
    working = asyncio.create_task(takes_many_turns())
    began = clock.monotonic()
    await clock.advance(1.0, turns=2)
    assert heard == [began] * 2
    far.cancel()
    await working
