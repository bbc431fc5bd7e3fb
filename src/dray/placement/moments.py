"""Points in time as whole microseconds since 1970: exact, cheap to compare, and safe to add large numbers to."""

from __future__ import annotations

import datetime as dt
from typing import Final, TypeAlias

from dray.api.times import MicroTime, Time

Moment: TypeAlias = int
"""Microseconds since 1970."""

MICROS_PER_SECOND: Final = 1_000_000

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND: Final = dt.timedelta(microseconds=1)


def moment_of(when: dt.datetime | Time | MicroTime) -> Moment:
    """The moment of an aware datetime or an API time."""
    if isinstance(when, Time | MicroTime):
        when = when.datetime()
    return (when - _EPOCH) // _MICROSECOND


def text_of(moment: Moment) -> str:
    """A moment as the API writes times; what lies beyond the calendar is `never`."""
    try:
        return str(Time.of(_EPOCH + moment * _MICROSECOND))
    except OverflowError:
        return "never"


def seconds_between(earlier: Moment, later: Moment) -> float:
    """How many seconds lie between two moments."""
    return (later - earlier) / MICROS_PER_SECOND


def in_words(micros: int) -> str:
    """A length of time for people: `45 s`, `12 min`, `3 h`, `40 days`; rounded up, so that it is never `0 s`."""
    seconds = -(-abs(micros) // MICROS_PER_SECOND)
    for unit, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def earliest(*moments: Moment | None) -> Moment | None:
    """The first of those that are set."""
    return min((moment for moment in moments if moment is not None), default=None)
