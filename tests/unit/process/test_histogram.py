"""Durations in buckets, as Prometheus counts them."""

from dray.process.histogram import Histogram


def test_every_bucket_counts_those_below_it() -> None:
    histogram = Histogram((0.1, 1.0))
    assert not histogram
    for seconds in (0.05, 0.1, 0.5, 3.0):
        histogram.observe(seconds)
    assert histogram
    assert histogram.cumulative() == [("0.1", 2.0), ("1.0", 3.0), ("+Inf", 4.0)]
    assert histogram.seconds == 3.65
