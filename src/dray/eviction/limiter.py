"""The rate at which one taint may evict: ten at once, then so many a second (5055-90, 5055-91)."""

from __future__ import annotations

BURST = 10
MAX_RATE = 1_000_000
CATCH_UP = 0.25
"""Seconds. Whoever asks late gets what was free meanwhile, but not from longer ago than this: then no five seconds see
more than a twentieth too many."""
ROUNDING = 1e-6
"""Seconds. Sums of intervals are not exact: what is free so soon is free now, or it would take another round."""
TOGETHER = 0.01
"""Seconds. Evictions that would be closer together than this are let go together: asking for each costs more."""


class Limiter:
    """A leaky bucket, kept as one number: when the bucket will be empty.

    first ten at t0, then one every 1/rate seconds: number n > 10 at t0 + (n - 10)/rate

    Times are seconds of a clock that never jumps.
    """

    __slots__ = ("_empty_at", "_interval")

    def __init__(self, rate: int | None) -> None:
        """`rate` is evictions per second, at least 1; None if there is no limit."""
        self._interval = _interval(rate)
        self._empty_at = float("-inf")

    def set_rate(self, rate: int | None, tick: float) -> None:
        """Changes the rate at once; what is in the bucket stays (5055: a changed rate acts without a restart)."""
        interval = _interval(rate)
        if interval != self._interval:
            level = max(self._empty_at - tick, 0.0) / self._interval if self._interval else 0.0
            self._interval = interval
            self._empty_at = tick + level * interval

    def free_at(self, since: float) -> float:
        """When the next eviction may happen that has been wanted since some time: then, or later."""
        return max(since, self._empty_at - (BURST - 1) * self._interval)

    def worth_at(self, since: float, waiting: int) -> float:
        """When it is worth to ask again, if so many wait: when one may go, or at a high rate several together."""
        together = min(int(TOGETHER / self._interval), waiting) if self._interval else 0
        return self.free_at(since) + max(together - 1, 0) * self._interval

    def take(self, moment: float) -> None:
        """An eviction happens that was free at this moment."""
        self._empty_at = max(self._empty_at, moment) + self._interval

    def give_back(self) -> None:
        """One that was taken did not happen, and another may happen instead."""
        self._empty_at -= self._interval

    @property
    def idle_at(self) -> float:
        """When the bucket is empty."""
        return self._empty_at

    def is_idle(self, tick: float) -> bool:
        """Whether the bucket is empty: a new limiter would behave the same."""
        return self._empty_at <= tick


def _interval(rate: int | None) -> float:
    return 0.0 if rate is None else 1.0 / min(max(rate, 1), MAX_RATE)
