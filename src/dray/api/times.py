"""Points in time as Kubernetes writes them: RFC 3339 in UTC, with whole seconds or with microseconds.

A time is kept as its normalised text. That text is what goes over the wire, it costs nothing to encode, and
the order of texts is the order of times. Pure values: no I/O, and nobody here asks for the current time.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Final, Self

__all__ = ["MicroTime", "Time", "TimeError", "later", "moment_at"]

_DAY: Final = (
    r"(?!0000)[0-9]{4}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])"
    r"|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
)
_CLOCK: Final = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
# Already normalised, and valid without a calendar: every such text but those of 29 February.
_NORMAL: Final = re.compile(rf"{_DAY}T{_CLOCK}Z")
_NORMAL_MICRO: Final = re.compile(rf"{_DAY}T{_CLOCK}\.[0-9]{{6}}Z")

# What Go's time package reads for RFC 3339: the hour may have one digit, the fraction may follow a comma.
_ANY: Final = re.compile(
    r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
    r"T(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
    r"(?:[.,](?P<fraction>[0-9]+))?"
    r"(?:Z|(?P<sign>[+-])(?P<offset_hours>[0-9]{2}):(?P<offset_minutes>[0-9]{2}))"
)
_MAX_TEXT_LENGTH: Final = 128
_FIRST: Final = dt.datetime(1, 1, 1, tzinfo=dt.UTC)
_LAST: Final = dt.datetime(9999, 12, 31, 23, 59, 59, tzinfo=dt.UTC)


class TimeError(ValueError):
    """A text is not a time that Kubernetes accepts. The message says why."""


class Time(str):
    """A time in whole seconds, such as ``2026-06-01T12:00:00Z``. Make one with ``parse`` or ``of``."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an RFC 3339 time with any offset; a fraction is cut off. Raises TimeError."""
        if text.__class__ is str and _NORMAL.fullmatch(text) is not None:
            return cls(text)
        return cls.of(_read(text))

    @classmethod
    def of(cls, moment: dt.datetime) -> Self:
        """The time of an aware datetime, cut to the second. Raises TimeError for a naive one."""
        return cls(_in_utc(moment).isoformat(timespec="seconds") + "Z")

    def datetime(self) -> dt.datetime:
        """The same moment as an aware datetime in UTC."""
        return dt.datetime.fromisoformat(self)

    def after(self, seconds: float) -> Self:
        """So many seconds later, as far as the calendar goes."""
        return type(self).of(later(self.datetime(), seconds))

    def seconds_until(self, end: Time) -> float:
        """How long it is to another time; negative if that is past."""
        return (end.datetime() - self.datetime()).total_seconds()


class MicroTime(str):
    """A time in microseconds, such as ``2026-06-01T12:00:00.000000Z``. Make one with ``parse`` or ``of``."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an RFC 3339 time with any offset and, as Kubernetes demands, six digits of fraction."""
        if text.__class__ is str and _NORMAL_MICRO.fullmatch(text) is not None:
            return cls(text)
        return cls.of(_read(text, fraction_digits=6))

    @classmethod
    def of(cls, moment: dt.datetime) -> Self:
        """The time of an aware datetime. Raises TimeError for a naive one."""
        return cls(_in_utc(moment).isoformat(timespec="microseconds") + "Z")

    def datetime(self) -> dt.datetime:
        """The same moment as an aware datetime in UTC."""
        return dt.datetime.fromisoformat(self)


def later(moment: dt.datetime, seconds: float) -> dt.datetime:
    """So many seconds after an aware moment, as far as the calendar goes: people may ask for any number."""
    try:
        return moment + dt.timedelta(seconds=seconds)
    except OverflowError:
        return _LAST if seconds > 0 else _FIRST


def moment_at(seconds: float) -> dt.datetime:
    """So many seconds after 1970, as far as the calendar goes."""
    return dt.datetime.fromtimestamp(min(max(seconds, _FIRST.timestamp()), _LAST.timestamp()), dt.UTC)


def _in_utc(moment: dt.datetime) -> dt.datetime:
    """The moment in UTC, without its time zone."""
    if moment.tzinfo is None:
        raise TimeError(f"{moment.isoformat()} has no time zone")
    try:
        return moment.astimezone(dt.UTC).replace(tzinfo=None)
    except OverflowError:
        raise TimeError(f"{moment.isoformat()} is outside the years 1 to 9999 in UTC") from None


def _read(text: str, fraction_digits: int | None = None) -> dt.datetime:
    """Read any accepted spelling; ``fraction_digits`` demands exactly that many digits after the second."""
    if not isinstance(text, str):
        raise TimeError(f"a time must be a string, not {type(text).__name__}")
    if len(text) > _MAX_TEXT_LENGTH:
        raise TimeError(f"the time has {len(text)} characters; at most {_MAX_TEXT_LENGTH} are accepted")
    match = _ANY.fullmatch(text)
    if match is None:
        raise TimeError(f"{text!r} is not an RFC 3339 time such as 2026-06-01T12:00:00Z")
    fraction = match["fraction"] or ""
    if fraction_digits is not None and len(fraction) != fraction_digits:
        raise TimeError(
            f"{text!r} must have {fraction_digits} digits after the second, as in 2026-06-01T12:00:00.000000Z"
        )
    year, month, day, hour, minute, second = map(int, match.group(1, 2, 3, 4, 5, 6))
    offset = _offset(text, match)
    try:
        local = dt.datetime(year, month, day, hour, minute, second, int(f"{fraction:0<6}"[:6]), dt.UTC)
        return local - offset
    except OverflowError:
        raise TimeError(f"time {text!r} is outside the years 1 to 9999 in UTC") from None
    except ValueError as error:
        raise TimeError(f"time {text!r} does not exist: {error}") from None


def _offset(text: str, match: re.Match[str]) -> dt.timedelta:
    if match["sign"] is None:
        return dt.timedelta()
    hours, minutes = int(match["offset_hours"]), int(match["offset_minutes"])
    # Go lets people write 24 hours and 60 minutes.
    if hours > 24 or minutes > 60:
        raise TimeError(f"the offset in time {text!r} is out of range")
    offset = dt.timedelta(hours=hours, minutes=minutes)
    return offset if match["sign"] == "+" else -offset
