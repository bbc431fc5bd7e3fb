"""The fleet of a hub, read by whoever may."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dray.api.registry import Kind
from dray.api.status import ApiError
from dray.live.hubs import load_fleet


class NoHub:
    """A server without the kinds of a hub, which is the quicker to say so the later it is asked."""

    def __init__(self) -> None:
        self._turns = 10

    async def list(self, kind: Kind) -> Any:
        self._turns -= 1
        for _ in range(self._turns):
            await asyncio.sleep(0)
        raise ApiError(404, "NotFound", kind.plural)


async def test_that_a_server_is_no_hub_is_said_the_same_each_time() -> None:
    client: Any = NoHub()
    with pytest.raises(ApiError, match="managedclusters"):
        await load_fleet(client)
