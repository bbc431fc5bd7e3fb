"""Times: what is accepted, the normal form, and that text order is time order."""

from __future__ import annotations

import datetime as dt
import itertools

import pytest

from dray.api.times import MicroTime, Time, TimeError


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("2026-06-01T12:00:00Z", "2026-06-01T12:00:00Z"),
        ("2026-06-01T12:00:00+00:00", "2026-06-01T12:00:00Z"),
        ("2026-06-01T12:00:00-00:00", "2026-06-01T12:00:00Z"),
        ("2026-06-01T12:00:00+02:00", "2026-06-01T10:00:00Z"),
        ("2026-06-01T00:30:00+05:45", "2026-05-31T18:45:00Z"),
        ("2025-12-31T23:00:00-01:00", "2026-01-01T00:00:00Z"),
        ("2026-06-01T12:00:00.5Z", "2026-06-01T12:00:00Z"),
        ("2026-06-01T12:00:59.999999999999Z", "2026-06-01T12:00:59Z"),
        ("2026-06-01T12:00:00.123+01:00", "2026-06-01T11:00:00Z"),
        ("2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z"),
        ("2000-02-29T00:00:00Z", "2000-02-29T00:00:00Z"),
        ("2026-01-31T23:59:59Z", "2026-01-31T23:59:59Z"),
        ("2026-04-30T00:00:00Z", "2026-04-30T00:00:00Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
        ("0987-01-02T03:04:05+01:00", "0987-01-02T02:04:05Z"),
        ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
        # Spellings that Go's time package lets through.
        ("2026-06-01T2:00:00Z", "2026-06-01T02:00:00Z"),
        ("2026-06-01T12:00:00,5Z", "2026-06-01T12:00:00Z"),
        ("2026-06-01T12:00:00+24:00", "2026-05-31T12:00:00Z"),
        ("2026-06-01T12:00:00+00:60", "2026-06-01T11:00:00Z"),
    ],
)
def test_accepted_times(text: str, normal: str) -> None:
    assert Time.parse(text) == normal


@pytest.mark.parametrize(
    "text",
    [
        "", "2026", "2026-06-01", "2026-06-01T12:00Z", "2026-06-01T12:00:00", "2026-06-01 12:00:00Z",
        "2026-06-01t12:00:00Z", "2026-06-01T12:00:00z", " 2026-06-01T12:00:00Z", "2026-06-01T12:00:00Z ",
        "2026-06-01T12:00:00Z\n", "2026-06-01T12:00:00.Z", "2026-06-01T12:00:00+0200", "2026-06-01T12:00:00+02",
        "2026-06-01T12:00:00+2:00", "2026-06-01T12:00:00+25:00", "2026-06-01T12:00:00+00:61",
        "2026-06-01T12:00:60Z", "2026-06-01T12:60:00Z", "2026-06-01T24:00:00Z", "2026-06-01T12:0:00Z",
        "2026-00-01T12:00:00Z", "2026-13-01T12:00:00Z", "2026-6-01T12:00:00Z", "2026-06-1T12:00:00Z",
        "2026-06-00T12:00:00Z", "2026-06-31T12:00:00Z", "2026-01-32T12:00:00Z", "2025-02-29T12:00:00Z",
        "1900-02-29T12:00:00Z", "2026-02-30T12:00:00Z", "0000-01-01T00:00:00Z", "26-06-01T12:00:00Z",
        "02026-06-01T12:00:00Z", "-2026-06-01T12:00:00Z", "２026-06-01T12:00:00Z", "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00", "2026-06-01T12:00:00." + "1" * 109 + "Z",
    ],
)  # fmt: skip
def test_refused_times(text: str) -> None:
    with pytest.raises(TimeError):
        Time.parse(text)


def test_values_that_are_no_text_are_refused() -> None:
    for value in (None, 5, b"2026-06-01T12:00:00Z"):
        with pytest.raises(TimeError, match="must be a string"):
            Time.parse(value)  # type: ignore[arg-type]
        with pytest.raises(TimeError, match="must be a string"):
            MicroTime.parse(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("2026-06-01T12:00:00.123456Z", "2026-06-01T12:00:00.123456Z"),
        ("2026-06-01T12:00:00.000000+02:00", "2026-06-01T10:00:00.000000Z"),
        ("2024-02-29T00:00:00.000001Z", "2024-02-29T00:00:00.000001Z"),
    ],
)
def test_accepted_micro_times(text: str, normal: str) -> None:
    assert MicroTime.parse(text) == normal


@pytest.mark.parametrize(
    "text",
    [
        "2026-06-01T12:00:00Z",
        "2026-06-01T12:00:00.12345Z",
        "2026-06-01T12:00:00.1234567Z",
        "2025-02-29T00:00:00.000000Z",
    ],
)
def test_micro_times_need_six_digits(text: str) -> None:
    with pytest.raises(TimeError):
        MicroTime.parse(text)


def test_conversion_from_and_to_datetime() -> None:
    moment = dt.datetime(2026, 6, 1, 14, 0, 7, 123456, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    assert Time.of(moment) == "2026-06-01T12:00:07Z"
    assert MicroTime.of(moment) == "2026-06-01T12:00:07.123456Z"
    assert Time.of(moment).datetime() == moment.replace(microsecond=0)
    assert MicroTime.of(moment).datetime() == moment
    assert Time.of(moment).datetime().utcoffset() == dt.timedelta()
    assert Time.of(dt.datetime(7, 1, 2, tzinfo=dt.UTC)) == "0007-01-02T00:00:00Z"


def test_datetimes_that_are_no_point_in_time_are_refused() -> None:
    with pytest.raises(TimeError, match="no time zone"):
        Time.of(dt.datetime(2026, 6, 1))
    with pytest.raises(TimeError, match="years 1 to 9999"):
        Time.of(dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=2))))


def test_text_order_is_time_order() -> None:
    ascending = [
        Time.parse(text)
        for text in (
            "0987-01-02T03:04:05Z",
            "2026-05-31T23:59:59Z",
            "2026-06-01T12:00:00+02:00",
            "2026-06-01T11:00:00Z",
            "2026-06-01T11:00:00-05:00",
        )
    ]
    for earlier, later in itertools.pairwise(ascending):
        assert earlier < later
        assert earlier.datetime() < later.datetime()


def test_every_day_of_a_leap_year_and_of_another_year() -> None:
    for year in (2024, 2026):
        for month, day in itertools.product(range(14), range(33)):
            text = f"{year}-{month:02}-{day:02}T00:00:00Z"
            try:
                dt.date(year, month, day)
            except ValueError:
                with pytest.raises(TimeError):
                    Time.parse(text)
            else:
                assert Time.parse(text) == text
