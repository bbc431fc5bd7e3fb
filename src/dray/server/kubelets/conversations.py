"""What goes on for long, of each user: each takes room on the way, for as long as it goes on."""

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

    def __init__(self, most: int = MOST_OF_ONE, what: str = "logs, commands or ports") -> None:
        """Of one user there are so many at once, of what."""
        self._most = most
        self._what = what
        self._open: Counter[str] = Counter()

    async def opened(self, user: str, open_one: Callable[[], Awaitable[Answer]], count: int = 1) -> Answer:
        """What is answered, on the account of a user, as so many, until it has ended. Raises ApiError."""
        if self._open[user] + count > self._most:
            raise errors.too_many_requests(f"{user} has {self._most} {self._what} open at once", 5)
        self._open[user] += count
        try:
            answer = await open_one()
        except BaseException:
            self._end(user, count)
            raise
        if isinstance(answer, Response):
            self._end(user, count)
        else:
            answer.ended = lambda: self._end(user, count)
        return answer

    def _end(self, user: str, count: int) -> None:
        self._open[user] -= count
        if not self._open[user]:
            del self._open[user]
