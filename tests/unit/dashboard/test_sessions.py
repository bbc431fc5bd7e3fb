"""Sessions over time: links that work once, idle ones, credentials that end."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from dray.api.status import ApiError
from dray.dashboard.access import Caller
from dray.dashboard.sessions import CODE_SECONDS, IDLE_SECONDS, MOST_OF_ONE, Sessions
from dray.process.clock import VirtualClock


class Door:
    """Lets everybody in whose token it knows."""

    name = "here"
    check_seconds = 30.0

    def __init__(self) -> None:
        self.known = {"good"}
        self.left = 0

    async def enter(self, token: str) -> Caller:
        if token not in self.known:
            raise ApiError(401, "Unauthorized", "the credential is not valid")
        return Caller("alice", (), cast(Any, None), cast(Any, None), token)

    async def is_still_in(self, caller: Caller) -> bool:
        return caller.credential in self.known

    async def leave(self, _caller: Caller) -> None:
        self.left += 1


def test_a_link_works_once_and_not_for_ever() -> None:
    async def story() -> None:
        clock = VirtualClock()
        sessions = Sessions(Door(), clock)
        code, old = sessions.new_code("good"), sessions.new_code("good")
        session, _, _ = await sessions.log_in(code=code)
        assert session.caller.user == "alice"
        with pytest.raises(ApiError, match="used already"):
            await sessions.log_in(code=code)
        await clock.advance(CODE_SECONDS + 1)
        with pytest.raises(ApiError, match="too old"):
            await sessions.log_in(code=old)

    asyncio.run(story())


def test_a_session_ends_when_it_lies_idle_or_its_credential_is_taken_away() -> None:
    async def story() -> None:
        door, clock = Door(), VirtualClock()
        sessions = Sessions(door, clock)
        _, cookie, key = await sessions.log_in(token="good")
        assert await sessions.find(cookie, key) is not None
        assert await sessions.find(cookie, "other") is None
        await clock.advance(IDLE_SECONDS + 1)
        assert await sessions.find(cookie, key) is None
        _, cookie, key = await sessions.log_in(token="good")
        door.known.clear()
        await clock.advance(door.check_seconds + 1)
        assert await sessions.find(cookie, key) is None
        assert door.left == 2

    asyncio.run(story())


def test_one_user_has_so_many_sessions_and_no_more() -> None:
    async def story() -> None:
        sessions = Sessions(Door(), VirtualClock())
        made = [await sessions.log_in(token="good") for _ in range(MOST_OF_ONE + 1)]
        found = [await sessions.find(cookie, key) for _, cookie, key in made]
        assert found[0] is None
        assert all(one is not None for one in found[1:])

    asyncio.run(story())
