"""How long things take, counted by size as Prometheus' histograms are, for one look-up and two additions each.

The histogram of prometheus_client does the same for other threads, too, in ten times the time: too much for what
happens several times for every pod.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from prometheus_client.core import HistogramMetricFamily


class Histogram:
    """Counts of durations, by upper bounds in seconds."""

    __slots__ = ("_bounds", "_counts", "seconds")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.seconds = 0.0

    def observe(self, seconds: float) -> None:
        """One more."""
        self.seconds += seconds
        self._counts[bisect_left(self._bounds, seconds)] += 1

    def __bool__(self) -> bool:
        """Whether there were any."""
        return any(self._counts)

    def cumulative(self) -> list[tuple[str, float]]:
        """The counts as Prometheus wants them, each with those below it."""
        total, result = 0, []
        for bound, count in zip((*map(str, self._bounds), "+Inf"), self._counts, strict=True):
            total += count
            result.append((bound, float(total)))
        return result


def histogram_family(
    name: str, about: str, labels: Sequence[str], histograms: Iterable[tuple[Sequence[str], Histogram]]
) -> HistogramMetricFamily:
    """Histograms by their label values, as a page of metrics shows them."""
    family = HistogramMetricFamily(name, about, labels=labels)
    for values, histogram in histograms:
        family.add_metric(values, histogram.cumulative(), histogram.seconds)
    return family
