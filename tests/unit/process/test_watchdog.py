"""A loop that stands still is noticed, told of with its stack, and counted."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from dray.process.watchdog import Watchdog


def block_the_loop(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


async def test_a_loop_that_stands_still_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    registry = CollectorRegistry()
    watchdog = Watchdog(stall_seconds=0.3)
    registry.register(watchdog)
    watchdog.start()
    try:
        await asyncio.sleep(0.2)
        block_the_loop(2.0)
        await asyncio.sleep(0.3)
    finally:
        watchdog.stop()
    stuck = [record.message for record in caplog.records if "stands still since" in record.message]
    assert any("block_the_loop" in message for message in stuck)
    assert registry.get_sample_value("dray_loop_stalls_total") >= 1  # type: ignore[operator]
    assert registry.get_sample_value("dray_loop_longest_turn_seconds") >= 1.5  # type: ignore[operator]
    assert registry.get_sample_value("dray_loop_stalled_seconds_total") >= 1.5  # type: ignore[operator]


async def test_a_loop_that_only_waited_was_not_at_work(caplog: pytest.LogCaptureFixture) -> None:
    """As on a machine that is busy with something else: whoever reads the log need not look for what dray did."""
    watchdog = Watchdog(stall_seconds=0.3)
    watchdog.start()
    try:
        await asyncio.sleep(0.2)
        time.sleep(1.5)
        await asyncio.sleep(0.3)
    finally:
        watchdog.stop()
    stood: list[Any] = [record.args for record in caplog.records if "stood still" in record.message]
    held_up, at_work = max(stood)  # the machine may have held it up for a while, too
    assert held_up >= 1.0
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
