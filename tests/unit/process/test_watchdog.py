"""A loop that stands still is noticed, told of with its stack, and counted."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from dray.process.watchdog import BEAT_SECONDS, Watchdog
from patience import PATIENCE, eventually_async


def block_the_loop(done: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not done() and time.monotonic() < end:
        pass


async def test_a_loop_that_stands_still_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    registry = CollectorRegistry()
    watchdog = Watchdog(stall_seconds=0.3)
    registry.register(watchdog)
    watchdog.start()
    try:
        block_the_loop(lambda: "stands still since" in caplog.text)
        await eventually_async(lambda: watchdog.stalls)
    finally:
        watchdog.stop()
    assert "block_the_loop" in caplog.text
    assert registry.get_sample_value("dray_loop_stalls_total") >= 1  # type: ignore[operator]
    assert registry.get_sample_value("dray_loop_longest_turn_seconds") >= 0.3  # type: ignore[operator]
    assert registry.get_sample_value("dray_loop_stalled_seconds_total") >= 0.3  # type: ignore[operator]


async def test_a_loop_that_only_waited_was_not_at_work(caplog: pytest.LogCaptureFixture) -> None:
    """As on a machine that is busy with something else: whoever reads the log need not look for what dray did."""
    watchdog = Watchdog(stall_seconds=0.3)
    watchdog.start()
    try:
        await asyncio.sleep(2 * BEAT_SECONDS)
        time.sleep(0.6)
        await eventually_async(lambda: watchdog.stalls)
    finally:
        watchdog.stop()
    stood: list[Any] = [record.args for record in caplog.records if "stood still" in record.message]
    held_up, at_work = max(stood)  # the machine may have held it up for a while, too
    assert held_up >= 0.4
    assert at_work < held_up / 2


async def test_one_stall_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    times = [0.0]
    watchdog = Watchdog(stall_seconds=1.0, clock=lambda: times[-1])
    watchdog.start()
    watchdog.stop()
    caplog.clear()
    for now in (0.5, 1.5, 2.0, 3.0):
        times.append(now)
        watchdog.look()
    assert len(caplog.records) == 1
