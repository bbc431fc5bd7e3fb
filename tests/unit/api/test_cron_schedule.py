"""When cron jobs start."""

import datetime as dt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dray.api.cron_schedule import Schedule, ScheduleError, parse_schedule, time_zone

UTC = dt.UTC


def times(schedule: str, start: str, number: int = 3, zone: str | None = None) -> list[str]:
    found, moment = [], dt.datetime.fromisoformat(start)
    for _ in range(number):
        following = parse_schedule(schedule).next_after(moment, time_zone(zone))
        assert following is not None
        moment = following
        found.append(moment.strftime("%m-%d %H:%M"))
    return found


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("* * * * *", ["11-17 10:31", "11-17 10:32", "11-17 10:33"]),
        ("*/15 * * * *", ["11-17 10:45", "11-17 11:00", "11-17 11:15"]),
        ("5/20 * * * *", ["11-17 10:45", "11-17 11:05", "11-17 11:25"]),
        ("0 8-18/5 * * *", ["11-17 13:00", "11-17 18:00", "11-18 08:00"]),
        ("0 0 * * mon-WED", ["11-18 00:00", "11-23 00:00", "11-24 00:00"]),
        ("0 12 1 feb,Aug ?", ["02-01 12:00", "08-01 12:00", "02-01 12:00"]),
        ("0 0 13 * 5", ["11-20 00:00", "11-27 00:00", "12-04 00:00"]),  # either day is enough
        ("0 0 */2 * 5", ["11-19 00:00", "11-20 00:00", "11-21 00:00"]),  # a step is a choice, not any day
        ("0 0 29 2 *", ["02-29 00:00", "02-29 00:00", "02-29 00:00"]),
        ("@hourly", ["11-17 11:00", "11-17 12:00", "11-17 13:00"]),
        ("@weekly", ["11-22 00:00", "11-29 00:00", "12-06 00:00"]),
        ("@monthly", ["12-01 00:00", "01-01 00:00", "02-01 00:00"]),
        ("@yearly", ["01-01 00:00", "01-01 00:00", "01-01 00:00"]),
        ("@every 90m", ["11-17 12:00", "11-17 13:30", "11-17 15:00"]),
    ],
)
def test_the_next_times(schedule: str, expected: list[str]) -> None:
    assert times(schedule, "2026-11-17T10:30:20+00:00") == expected


def test_the_clocks_of_a_zone() -> None:
    """Berlin: 02:00 becomes 03:00 on 29 March, and 03:00 becomes 02:00 on 25 October 2026."""
    assert times("0 9 * * *", "2026-03-28T12:00:00+00:00", 2, "Europe/Berlin") == ["03-29 07:00", "03-30 07:00"]
    assert times("30 2 * * *", "2026-03-28T12:00:00+00:00", 2, "Europe/Berlin") == ["03-30 00:30", "03-31 00:30"]
    assert times("30 2 * * *", "2026-10-24T12:00:00+00:00", 2, "Europe/Berlin") == ["10-25 00:30", "10-25 01:30"]


@pytest.mark.parametrize(
    ("schedule", "why"),
    [
        ("* * * *", "expected exactly 5 fields, found 4"),
        ("60 * * * *", "minute: end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "day of month: beginning of range (0) below minimum (1): 0"),
        ("* * * * 7", "day of week: end of range (7) above maximum (6): 7"),
        ("5-1 * * * *", "minute: beginning of range (5) beyond end of range (1): 5-1"),
        ("*/0 * * * *", "minute: step of range should be a positive number: */0"),
        ("a * * * *", "minute: 'a' in 'a' is no number"),
        ("1-2-3 * * * *", "minute: '2-3' in '1-2-3' is no number"),
        ("@sometimes", "unrecognized descriptor: @sometimes"),
        ("@every never", "@every: 'never' is no duration"),
    ],
)
def test_what_is_no_schedule(schedule: str, why: str) -> None:
    with pytest.raises(ScheduleError) as error:
        parse_schedule(schedule)
    assert why in str(error.value)


@pytest.mark.parametrize("zone", ["Mars/Olympus", "../etc/passwd", "Local", "local", "/etc/localtime"])
def test_what_is_no_time_zone(zone: str) -> None:
    with pytest.raises(ScheduleError):
        time_zone(zone)


def test_a_day_that_never_comes() -> None:
    assert parse_schedule("0 0 30 2 *").next_after(dt.datetime(2026, 1, 1, tzinfo=UTC)) is None


def _sets(first: int, last: int) -> st.SearchStrategy[frozenset[int]]:
    return st.frozensets(st.integers(first, last), min_size=1, max_size=4)


@settings(max_examples=20)
@given(
    st.builds(
        Schedule,
        _sets(0, 59),
        _sets(0, 23),
        _sets(1, 28),
        st.just(frozenset(range(1, 13))),
        _sets(0, 6),
        st.booleans(),
        st.just(0),
    ),
    st.datetimes(dt.datetime(2026, 1, 1), dt.datetime(2027, 1, 1)),
    st.sampled_from(["UTC", "America/New_York", "Australia/Lord_Howe", "America/Asuncion", "Asia/Kathmandu"]),
)
def test_the_next_time_is_the_first_minute_that_fits(schedule: Schedule, start: dt.datetime, zone: str) -> None:
    """Against going through all minutes of the next days one by one."""
    tz = time_zone(zone)
    moment = start.replace(second=0, microsecond=0, tzinfo=UTC)
    found = schedule.next_after(moment, tz)
    expected = None
    for minutes in range(1, 2 * 24 * 60):
        candidate = moment + dt.timedelta(minutes=minutes)
        local = candidate.astimezone(tz)
        days = (local.day in schedule.days, local.isoweekday() % 7 in schedule.weekdays)
        fits = all(days) if schedule.any_day else any(days)
        if fits and local.hour in schedule.hours and local.minute in schedule.minutes:
            expected = candidate
            break
    if expected is not None or found is None or found < moment + dt.timedelta(days=2):
        assert found == expected


def test_a_schedule_has_an_end() -> None:
    whole = ",".join(map(str, range(60)))
    assert len(parse_schedule(f"{whole} * * * *").minutes) == 60
    with pytest.raises(ScheduleError, match="longer than 4096 characters"):
        parse_schedule(",".join(["0-59"] * 1000) + " * * * *")
