"""The clock of a replay that is looked at."""

from __future__ import annotations

from dray.replay.stage import FastClock


def test_the_clock_stays_within_the_history_however_late_somebody_looks() -> None:
    clock = FastClock(1_000.0, 1_600.0, speed=1e12)
    assert (clock.now(), clock.monotonic()) == (1_600.0, 600.0)
    clock.stop()
    assert clock.now() == 1_600.0
