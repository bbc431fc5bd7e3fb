"""When cron jobs start: `*/15 8-18 * * mon-fri`, `@hourly`, `@every 90m`; and the next time after a moment. Pure.

A schedule is five fields: minute, hour, day of the month, month, day of the week (0 is Sunday). Each is a list of
`*`, numbers, names and ranges, with steps. If both days are given, either is enough. The zone is the caller's; a time
that a change of clocks leaves out is left out, and one that comes twice comes twice.
"""

from __future__ import annotations

import datetime as dt
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from dray.api.durations import parse_duration
from dray.api.text_memory import remember_texts

LONGEST: Final = 4096
"""All minutes, hours and days one by one are a tenth of it; controllers read schedules again and again."""
YEARS: Final = 5
"""A schedule with no time in so many years, such as 30 February, has none."""
_MINUTE: Final = dt.timedelta(minutes=1)
_DAY: Final = dt.timedelta(days=1)
_MONTHS: Final = dict(
    zip(["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], range(1, 13), strict=True)
)
_WEEKDAYS: Final = dict(zip(["sun", "mon", "tue", "wed", "thu", "fri", "sat"], range(7), strict=True))
_MACROS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class ScheduleError(ValueError):
    """A schedule or a time zone cannot be used. The message says which part and why."""


class _Field(NamedTuple):
    name: str
    first: int
    last: int
    names: dict[str, int]


_FIELDS: Final = (
    _Field("minute", 0, 59, {}),
    _Field("hour", 0, 23, {}),
    _Field("day of month", 1, 31, {}),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of week", 0, 6, _WEEKDAYS),
)


class Schedule(NamedTuple):
    """The values that each field may have, or a number of seconds from one time to the next."""

    minutes: frozenset[int] = frozenset()
    hours: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    any_day: bool = False
    """Whether one of the two kinds of day is `*`, so that the other alone decides."""
    every: int = 0

    def next_after(self, moment: dt.datetime, zone: dt.tzinfo = dt.UTC) -> dt.datetime | None:
        """The first time after an aware moment, in UTC; None if there is none for years, or in the calendar."""
        try:
            return self._next_after(moment.astimezone(dt.UTC), zone)
        except OverflowError:
            return None

    def _next_after(self, start: dt.datetime, zone: dt.tzinfo) -> dt.datetime | None:
        if self.every:
            return start.replace(microsecond=0) + dt.timedelta(seconds=self.every)
        found = start.replace(second=0, microsecond=0) + _MINUTE
        limit = found.year + YEARS
        while found.year <= limit:
            ahead = self._jump(found.astimezone(zone), found)
            if ahead is None:
                return found
            found = ahead
        return None

    def _jump(self, local: dt.datetime, moment: dt.datetime) -> dt.datetime | None:
        """The earliest moment after this one that could be in the schedule; None if this one is."""
        if local.month not in self.months:
            first = local.replace(day=1, hour=0, minute=0, fold=0) + dt.timedelta(days=32)
            return _forward(first.replace(day=1), moment)
        if not self._is_day(local):
            return _forward(local.replace(hour=0, minute=0, fold=0) + _DAY, moment)
        if local.hour not in self.hours:
            return moment + (60 - local.minute) * _MINUTE
        if local.minute not in self.minutes:
            later = min((one for one in self.minutes if one > local.minute), default=60)
            return moment + (later - local.minute) * _MINUTE
        return None

    def _is_day(self, local: dt.datetime) -> bool:
        by_date = local.day in self.days
        by_weekday = local.isoweekday() % 7 in self.weekdays
        return by_date and by_weekday if self.any_day else by_date or by_weekday


def _forward(local: dt.datetime, moment: dt.datetime) -> dt.datetime:
    """A local time as a moment in UTC; never before the next minute, whatever clocks do at midnight."""
    return max(local.astimezone(dt.UTC), moment + _MINUTE)


@remember_texts(4096)
def parse_schedule(text: str) -> Schedule:
    """Reads a schedule. Raises ScheduleError."""
    if len(text) > LONGEST:
        raise ScheduleError(f"longer than {LONGEST} characters")
    if text.startswith("@every "):
        return Schedule(every=_interval(text.removeprefix("@every ")))
    if text.startswith("@"):
        if text not in _MACROS:
            raise ScheduleError(f"unrecognized descriptor: {text}; known are {', '.join(_MACROS)} and @every DURATION")
        text = _MACROS[text]
    parts = text.split()
    if len(parts) != len(_FIELDS):
        raise ScheduleError(f"expected exactly {len(_FIELDS)} fields, found {len(parts)}: {text!r}")
    minutes, hours, days, months, weekdays = (_values(part, field) for part, field in zip(parts, _FIELDS, strict=True))
    return Schedule(minutes, hours, days, months, weekdays, any_day=_is_any(parts[2]) or _is_any(parts[4]))


def _interval(text: str) -> int:
    try:
        return max(int(parse_duration(text)), 1)
    except ValueError as error:
        raise ScheduleError(f"@every: {error}") from None


def _is_any(part: str) -> bool:
    """Whether a field has `*` or `?` among its items; with a step it is a choice like any other."""
    return any(item in ("*", "?", "*/1", "?/1") for item in part.split(","))


def _values(part: str, field: _Field) -> frozenset[int]:
    found: set[int] = set()
    for item in part.split(","):
        if item:
            found.update(_range(item, field))
    return frozenset(found)


def _range(item: str, field: _Field) -> range:
    bounds, slash, step_text = item.partition("/")
    low, hyphen, high = bounds.partition("-")
    step = _number(step_text, item, field) if slash else 1
    if low in ("*", "?"):
        start, end = field.first, field.last
    else:
        start = _value(low, item, field)
        end = _value(high, item, field) if hyphen else field.last if slash else start
    if start < field.first:
        raise ScheduleError(f"{field.name}: beginning of range ({start}) below minimum ({field.first}): {item}")
    if end > field.last:
        raise ScheduleError(f"{field.name}: end of range ({end}) above maximum ({field.last}): {item}")
    if start > end:
        raise ScheduleError(f"{field.name}: beginning of range ({start}) beyond end of range ({end}): {item}")
    if step < 1:
        raise ScheduleError(f"{field.name}: step of range should be a positive number: {item}")
    return range(start, end + 1, step)


def _value(text: str, item: str, field: _Field) -> int:
    named = field.names.get(text.lower())
    return _number(text, item, field) if named is None else named


def _number(text: str, item: str, field: _Field) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise ScheduleError(f"{field.name}: {text!r} in {item!r} is no number")
    return int(text)


def time_zone(name: str | None) -> dt.tzinfo:
    """A zone by its name in the time zone database; UTC if there is none. Raises ScheduleError."""
    if name is None:
        return dt.UTC
    if name.lower() == "local":
        raise ScheduleError("timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones")
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ScheduleError(f"unknown time zone {name}") from None
