"""What talks to strangers does so on a loop of its own: whatever they do, the server's loop goes on."""

from __future__ import annotations

import asyncio
import threading

import pytest

from dray.process.own_loop import OwnLoop
from patience import PATIENCE


async def test_it_goes_on_while_a_stranger_keeps_the_other_loop_busy() -> None:
    loop, done, busy = OwnLoop("strangers"), threading.Event(), threading.Event()

    async def busy_with_them() -> str:
        busy.set()
        assert done.wait(PATIENCE)  # blocks the loop that it is on
        return threading.current_thread().name

    asking = asyncio.create_task(loop.run(busy_with_them()))
    while not busy.is_set():
        await asyncio.sleep(0.001)
    assert not asking.done()
    done.set()
    assert await asking == "strangers"
    await loop.close()
    await loop.close()


async def test_who_is_cancelled_waits_no_more_on_either_side() -> None:
    loop, begun, ended = OwnLoop("strangers"), threading.Event(), threading.Event()

    async def hanging() -> None:
        begun.set()
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()

    asking = asyncio.create_task(loop.run(hanging()))
    await asyncio.to_thread(begun.wait, PATIENCE)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert await asyncio.to_thread(ended.wait, PATIENCE)
    await loop.close()


async def test_closing_ends_what_still_waits() -> None:
    loop, begun = OwnLoop("strangers"), threading.Event()

    async def hanging() -> None:
        begun.set()
        await asyncio.sleep(3600)

    asking = asyncio.create_task(loop.run(hanging()))
    await asyncio.to_thread(begun.wait, PATIENCE)
    await loop.close()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert not [thread for thread in threading.enumerate() if thread.name == "strangers"]
