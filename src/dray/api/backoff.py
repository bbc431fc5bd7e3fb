"""How long to wait before the next attempt: twice as long after each failure in a row, up to a limit.

Pure, and below everything that waits: the client backs off, too. Who waits, sleeps by its own clock:

    pauses = RETRY.pauses()
    while True:
        try:
            ...
            pauses.reset()
        except ApiError:
            await clock.sleep(pauses.next())
"""

from __future__ import annotations

from typing import NamedTuple


class Backoff(NamedTuple):
    """A rule for pauses, in seconds."""

    first: float
    longest: float

    def after(self, failures: int) -> float:
        """The pause after so many failures in a row; 0 if there was none."""
        if failures <= 0:
            return 0.0
        # No limit is more than 2**62 first pauses away; a larger power would not fit a float one day.
        return float(min(self.first * 2 ** min(failures - 1, 62), self.longest))

    def pauses(self) -> Pauses:
        """Somebody who counts their failures."""
        return Pauses(self)


class Pauses:
    """The pauses of one who tries again and again."""

    def __init__(self, backoff: Backoff) -> None:
        self._backoff = backoff
        self._failures = 0

    @property
    def failures(self) -> int:
        """How many failures in a row were counted."""
        return self._failures

    def next(self) -> float:
        """One more failure: how long to wait now."""
        self._failures += 1
        return self._backoff.after(self._failures)

    def reset(self) -> None:
        """It worked: the next failure is the first one again."""
        self._failures = 0
