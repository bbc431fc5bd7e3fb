"""The event loop on virtual time: nobody waits, nothing runs in threads, whoever would wait for ever is found out."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from dray.process import virtual_loop
from dray.process.virtual_loop import LoopClock, Stalled


def test_a_day_takes_no_time_and_a_pace_is_kept() -> None:
    async def sleep(seconds: float) -> float:
        clock = LoopClock(1000.0)
        await clock.sleep(seconds)
        return clock.now()

    assert virtual_loop.run(sleep(86_400)) == pytest.approx(87_400, abs=0.01)
    began = time.monotonic()
    virtual_loop.run(sleep(100), pace=1000)
    assert time.monotonic() - began >= 0.1


def test_what_threads_would_do_is_done_at_once() -> None:
    def fail() -> None:
        raise ValueError("no")

    async def main() -> tuple[int, float]:
        here = await asyncio.to_thread(threading.get_ident)
        with pytest.raises(ValueError, match="no"):
            await asyncio.to_thread(fail)
        return here, asyncio.get_running_loop().time()

    thread, seconds = virtual_loop.run(main())
    assert thread == threading.get_ident()
    assert seconds < 0.01


def test_whoever_waits_for_ever_or_never_is_found_out() -> None:
    async def wait() -> None:
        await asyncio.get_running_loop().create_future()

    async def spin() -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(Stalled, match="no timer is set"):
        virtual_loop.run(wait())
    with pytest.raises(Stalled, match="somebody never waits"):
        virtual_loop.run(spin(), most_turns=100)
