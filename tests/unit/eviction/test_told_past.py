"""When those left whom other processes tell of: their clocks and ours may be set meanwhile."""

from __future__ import annotations

import random

from dray.eviction.guard import WINDOW
from dray.eviction.told_past import Offset, Told, departed

START = 1_750_000_000
LOOK = 30


def told(*times: float) -> list[Told]:
    return [Told(left=tuple((int(by), 1, 0) for by in times))]


def test_the_offset_is_the_least_of_the_last_hour() -> None:
    chance = random.Random(5)
    offset, seen = Offset(), list[tuple[float, int]]()
    jumped = 0.0
    for number in range(2000):
        tick = float(number * LOOK)
        jumped += chance.choice((0.0,) * 30 + (4000.0, -4000.0, 90.0, -0.5))
        seen.append((tick, int(START + jumped)))
        expected = min(least for at, least in seen if at >= tick - WINDOW)
        assert offset.least(tick, START + tick + jumped) == expected, number


def test_who_left_before_a_clock_was_set_ahead_did_not_leave_earlier() -> None:
    offset = Offset()
    offset.least(1000.0, START + 1000.0)
    least = offset.least(1060.0, START + 1060.0 + 10_000)
    assert [one.by for one in departed(told(START + 1000), 1060.0, least)] == [1000.0]
    told_since = departed(told(START + 1050 + 10_000), 1060.0, least)  # by one whose clock was set, too
    assert [one.by for one in told_since] == [1060.0]


def test_an_hour_after_a_clock_was_set_it_is_as_if_it_had_always_been_so() -> None:
    offset = Offset()
    for tick in range(0, 1000, LOOK):
        offset.least(float(tick), START + tick)
    for tick in range(1000, 1000 + int(WINDOW) + 2 * LOOK, LOOK):
        least = offset.least(float(tick), START + tick + 10_000.0)
    assert least == START + 10_000
