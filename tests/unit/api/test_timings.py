"""Durations in buckets, as Prometheus counts them."""

from dray.api.timings import Timings


def test_every_bucket_counts_those_below_it() -> None:
    timings = Timings((0.1, 1.0))
    assert not timings
    for seconds in (0.05, 0.1, 0.5, 3.0):
        timings.observe(seconds)
    assert timings
    assert timings.cumulative() == [("0.1", 2.0), ("1.0", 3.0), ("+Inf", 4.0)]
    assert timings.seconds == 3.65
