"""How many conversations with containers each user has: each takes room on the way, for as long as it goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final

from dray.process.http import Answer, Response
from dray.server import errors

MOST_OF_ONE: Final = 100
"""Logs that are followed, commands and ports of one user at a time."""


class Conversations:
    """Counts them from the request to their end."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    async def opened(self, user: str, open_one: Callable[[], Awaitable[Answer]]) -> Answer:
        """What a kubelet answers, on the account of a user until it has ended. Raises ApiError."""
        if self._open[user] >= MOST_OF_ONE:
            raise errors.too_many_requests(f"{user} has {MOST_OF_ONE} logs, commands or ports open at once", 5)
        self._open[user] += 1
        try:
            answer = await open_one()
        except BaseException:
            self._end(user)
            raise
        if isinstance(answer, Response):
            self._end(user)
        else:
            answer.ended = lambda: self._end(user)
        return answer

    def _end(self, user: str) -> None:
        self._open[user] -= 1
        if not self._open[user]:
            del self._open[user]
