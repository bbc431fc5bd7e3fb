"""Durations and timestamps: their texts and the parts of them that can be asked for."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import MINYEAR, UTC, datetime, timedelta, timezone, tzinfo
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dray.cel.declarations import Function, function, member
from dray.cel.library.operators import checked_timestamp
from dray.cel.number_text import shortest_fixed
from dray.cel.types import DURATION, INT, STRING, TIMESTAMP
from dray.cel.values import INT_MAX, INT_MIN, CelError, Duration, Timestamp

__all__ = ["FUNCTIONS", "duration_text", "parse_duration", "parse_timestamp", "timestamp_text"]

_SECOND: Final = 10**9
_UNITS: Final = {
    "ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6,
    "s": _SECOND, "m": 60 * _SECOND, "h": 3600 * _SECOND,
}  # fmt: skip
_DURATION_PART: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_TIMESTAMP: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?"
    r"(?:(Z)|([+-])([0-9]{2}):([0-9]{2}))"
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_DIGITS: Final = 40
_CALENDAR_YEARS: Final = 400


def parse_duration(text: str) -> Duration | None:
    """A duration such as ``1h30m`` or ``-1.5s``, or None if the text is none or too long for 64 bits."""
    sign, rest = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if rest == "0":
        return Duration(0)
    total = 0
    position = 0
    while position < len(rest):
        part = _DURATION_PART.match(rest, position)
        if part is None or not (part[1] or part[2]) or len(part[1]) > _MAX_DIGITS:
            return None
        unit = _UNITS[part[3]]
        fraction = (part[2] or "")[:_MAX_DIGITS]
        total += int(part[1] or 0) * unit + (int(fraction) * unit // 10 ** len(fraction) if fraction else 0)
        position = part.end()
    total *= sign
    return Duration(total) if rest and INT_MIN <= total <= INT_MAX else None


def parse_timestamp(text: str) -> Timestamp | CelError | None:
    """A time in RFC 3339 form; None if the text is none, an error if the time is out of range."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    offset = 0
    if match[8] is None:
        if int(match[10]) > 24 or int(match[11]) > 59:
            return None
        offset = (int(match[10]) * 60 + int(match[11])) * 60 * (-1 if match[9] == "-" else 1)
    try:
        # Year 0 exists in RFC 3339, but no timestamp that early does; year 4 has the same calendar.
        moment = datetime(year or 4, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    if year == 0:
        return CelError("timestamp overflow")
    seconds = (moment - _EPOCH) // timedelta(seconds=1) - offset
    nanos = int((match[7] or "").ljust(9, "0")[:9])
    return checked_timestamp(seconds * _SECOND + nanos, offset)


def duration_text(value: Duration) -> str:
    """Seconds with as many decimals as it takes."""
    whole, rest = divmod(abs(value.nanos), _SECOND)
    seconds = float(whole) + rest / 1e9
    return shortest_fixed(-seconds if value.nanos < 0 else seconds) + "s"


def timestamp_text(value: Timestamp) -> str:
    """RFC 3339 in the offset of the timestamp, with as many decimals as it takes."""
    nanos = value.nanos % _SECOND
    try:
        moment = _EPOCH + timedelta(seconds=value.nanos // _SECOND + value.offset_seconds)
    except OverflowError:
        moment = _EPOCH + timedelta(seconds=value.nanos // _SECOND)
    text = moment.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
    if nanos:
        text += "." + f"{nanos:09d}".rstrip("0")
    if not value.offset_seconds:
        return text + "Z"
    hours, minutes = divmod(abs(value.offset_seconds) // 60, 60)
    return f"{text}{'-' if value.offset_seconds < 0 else '+'}{hours:02d}:{minutes:02d}"


def _zone(name: str) -> tzinfo | CelError:
    """A time zone by name (``Europe/Berlin``) or as an offset (``-08:00``)."""
    if ":" in name:
        hours, _, minutes = name.partition(":")
        if not (re.fullmatch(r"[+-]?[0-9]{1,4}", hours) and re.fullmatch(r"[+-]?[0-9]{1,4}", minutes)):
            return CelError(f"invalid time zone offset: {name}")
        offset = int(hours) * 60 + (-int(minutes) if name.startswith("-") else int(minutes))
        try:
            return timezone(timedelta(minutes=offset))
        except ValueError:
            return CelError(f"time zone offset out of range: {name}")
    if name in ("", "UTC"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return CelError(f"unknown time zone {name}")


def _local(value: Timestamp, zone: tzinfo) -> tuple[datetime, int]:
    """The moment in a zone, and by how many years it is off.

    In a zone the first hours of year 1 are in year 0, and the last of 9999 in 10000. Python knows neither, but the
    calendar is the same every 400 years, days of the week included.
    """
    moment = _EPOCH + timedelta(seconds=value.nanos // _SECOND)
    try:
        return moment.astimezone(zone), 0
    except OverflowError:
        years = _CALENDAR_YEARS if moment.year == MINYEAR else -_CALENDAR_YEARS
        return moment.replace(year=moment.year + years).astimezone(zone), -years


def _getter(
    part: Callable[[datetime, int], int], *, counts_years: bool = False
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Implementations that take part of a timestamp, in UTC and in a named zone."""

    def in_zone(value: Timestamp, name: str) -> Any:
        zone = _zone(name)
        if isinstance(zone, CelError):
            return zone
        moment, years = _local(value, zone)
        return part(moment, value.nanos % _SECOND) + (years if counts_years else 0)

    def in_utc(value: Timestamp) -> Any:
        return in_zone(value, "UTC")

    return in_utc, in_zone


def _toward_zero(value: Duration, unit: int) -> int:
    whole = abs(value.nanos) // unit
    return -whole if value.nanos < 0 else whole


def _timestamp_part(
    name: str, id: str, zoned_id: str, part: Callable[[datetime, int], int], *, counts_years: bool = False
) -> Function:
    in_utc, in_zone = _getter(part, counts_years=counts_years)
    return function(
        name,
        member(id, (TIMESTAMP,), INT, in_utc),
        member(zoned_id, (TIMESTAMP, STRING), INT, in_zone),
    )


def _duration_part(name: str, id: str, unit: int) -> Function:
    return function(name, member(id, (DURATION,), INT, lambda value: _toward_zero(value, unit)))


FUNCTIONS: Final = (
    _timestamp_part(
        "getFullYear",
        "timestamp_to_year",
        "timestamp_to_year_with_tz",
        lambda moment, _: moment.year,
        counts_years=True,
    ),
    _timestamp_part("getMonth", "timestamp_to_month", "timestamp_to_month_with_tz", lambda moment, _: moment.month - 1),
    _timestamp_part(
        "getDayOfYear",
        "timestamp_to_day_of_year",
        "timestamp_to_day_of_year_with_tz",
        lambda moment, _: moment.timetuple().tm_yday - 1,
    ),
    _timestamp_part(
        "getDayOfMonth",
        "timestamp_to_day_of_month",
        "timestamp_to_day_of_month_with_tz",
        lambda moment, _: moment.day - 1,
    ),
    _timestamp_part(
        "getDate",
        "timestamp_to_day_of_month_1_based",
        "timestamp_to_day_of_month_1_based_with_tz",
        lambda moment, _: moment.day,
    ),
    _timestamp_part(
        "getDayOfWeek",
        "timestamp_to_day_of_week",
        "timestamp_to_day_of_week_with_tz",
        lambda moment, _: moment.isoweekday() % 7,
    ),
    _timestamp_part(
        "getHours", "timestamp_to_hours", "timestamp_to_hours_with_tz", lambda moment, _: moment.hour
    ).merged(_duration_part("getHours", "duration_to_hours", 3600 * _SECOND)),
    _timestamp_part(
        "getMinutes", "timestamp_to_minutes", "timestamp_to_minutes_with_tz", lambda moment, _: moment.minute
    ).merged(_duration_part("getMinutes", "duration_to_minutes", 60 * _SECOND)),
    _timestamp_part(
        "getSeconds", "timestamp_to_seconds", "timestamp_to_seconds_tz", lambda moment, _: moment.second
    ).merged(_duration_part("getSeconds", "duration_to_seconds", _SECOND)),
    _timestamp_part(
        "getMilliseconds",
        "timestamp_to_milliseconds",
        "timestamp_to_milliseconds_with_tz",
        lambda _, nanos: nanos // 10**6,
    ).merged(_duration_part("getMilliseconds", "duration_to_milliseconds", 10**6)),
)
