"""One user has so many conversations with containers at a time, and no more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from dray.api.status import ApiError
from dray.process.http import Answer, Response, Stream
from dray.server.kubelets.conversations import MOST_OF_ONE, Conversations


async def nothing() -> AsyncIterator[bytes]:
    yield b""


async def chunks() -> Answer:
    return Stream(nothing())


async def refused() -> Answer:
    return Response(404)


async def broken() -> Answer:
    raise OSError


async def test_conversations_count_from_their_beginning_to_their_end() -> None:
    conversations = Conversations()
    never = asyncio.Event()

    async def slow() -> Answer:
        await never.wait()
        return Response(200)

    waiting = asyncio.ensure_future(conversations.opened("ann", slow))
    await asyncio.sleep(0)
    open_ones = [await conversations.opened("ann", chunks) for _ in range(MOST_OF_ONE - 1)]
    with pytest.raises(ApiError) as failure:
        await conversations.opened("ann", chunks)
    assert failure.value.code == 429
    await conversations.opened("bob", chunks)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    for _ in range(3):  # what has no conversation takes no place
        await conversations.opened("ann", refused)
        with pytest.raises(OSError):
            await conversations.opened("ann", broken)
    open_ones.append(await conversations.opened("ann", chunks))
    for one in open_ones:
        assert isinstance(one, Stream)
        one.ended()
    assert "ann" not in conversations._open
